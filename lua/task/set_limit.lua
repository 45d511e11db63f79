-- set_limit sets limit_at: the instant at which a task has been in line too long, or its attempt takes too long.
-- A limit at or after the end of the task is not kept.
--
--   instant  a number, or nil for no limit
--
-- @use store/record
-- @use task/final
-- @use task/schedule_limit
local function set_limit(tx, task, instant)
  local last = final(task)
  if instant and not (last and last <= instant) then
    record.set(tx, task, "limit_at", string.format("%d", instant))
    schedule_limit(tx, task)
  elseif task.limit_at then
    record.set(tx, task, "limit_at", nil)
    schedule_limit(tx, task)
  end
end
