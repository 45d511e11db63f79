-- doom_children prevents the children of an ended task from starting (task/ending.lua). The sweep ends them.
--
-- @use store/alarm
-- @use store/index
-- @use store/own
local function doom_children(tx, task)
  index.add(tx, tx.key.draining, task.completed_at, task.id)
  own(tx, "drained")[task.id] = tonumber(task.completed_at)
  alarm.note(tx, tx.at)
end
