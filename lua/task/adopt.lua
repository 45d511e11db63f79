-- adopt makes a task that plan has accepted, and adds it to the children of its owner.
--
-- @use store/later
-- @use store/record
-- @use task/create
local function adopt(tx, task, d, parent)
  if parent then
    later.push(tx, tx.key.children .. parent.id, task.id)
    record.set(tx, parent, "children", string.format("%d", (parent.children or 0) + 1))
  end
  create(tx, task.id, task.payload, d)
end
