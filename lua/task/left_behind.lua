-- left_behind reports whether an ended child or hook belongs to an earlier task that had the id of its owner. A task
-- with a name has the same id each time. Its record goes after its retention, and those of its children and hooks
-- can be kept longer. The new owner must not find them.
--
-- @use store/record
-- @use task/drained
-- @use task/incarnation
-- @use store/live
local function left_behind(tx, old)
  local above = old.owner or old.hook_of
  local owner = above and record.get(tx, above)
  return owner and owner.status and old.status and not live(old) and not incarnation.belongs(old, owner) and
    not (old.children and drained(tx, old.id))
end
