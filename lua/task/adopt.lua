-- adopt makes a task that plan has accepted, and adds it to the children of its owner. It first removes what an earlier
-- owner has left under its id (task/left_behind.lua).
--
-- @use store/later
-- @use store/record
-- @use task/create
-- @use task/remove
local function adopt(tx, task, d, parent)
  if parent then
    later.push(tx, tx.key.children .. parent.id, task.id)
    record.set(tx, parent, "children", string.format("%d", (parent.children or 0) + 1))
  end
  if task.replaces then
    remove(tx, task.replaces)
  end
  create(tx, task.id, task.payload, d)
end
