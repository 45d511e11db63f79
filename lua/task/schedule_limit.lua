-- schedule_limit puts a live task on the clock of limits at its nearest instant, or removes it from the clock.
--
-- @use store/alarm
-- @use store/index
-- @use task/nearest
local function schedule_limit(tx, task)
  local first = nearest(task)
  if first then
    index.add(tx, tx.key.limits, string.format("%d", first), task.id)
    alarm.note(tx, first)
  else
    index.remove(tx, tx.key.limits, task.id)
  end
end
