-- drop_patience has a limit of a member's own in a wait come once.
--
-- @use store/index
local function drop_patience(tx, id, w, name)
  w.rewatch = true
  index.remove(tx, tx.key.patience .. id, name)
end
