-- set_limit sets the instant at which a task has stood in line long enough, or its attempt has taken
-- long enough. One that the end of the task precedes is not kept.
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
