-- drop_patience removes the limit of a member's own in a wait, so that it ends the member once.
--
-- @use store/index
local function drop_patience(tx, id, w, name)
  w.rewatch = true
  index.remove(tx, tx.key.patience .. id, name)
end
