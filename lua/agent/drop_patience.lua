-- drop_patience removes a member's own limit in a wait, so that the limit ends the member only once.
--
-- @use store/index
local function drop_patience(tx, id, w, name)
  w.rewatch = true
  index.remove(tx, tx.key.patience .. id, name)
end
