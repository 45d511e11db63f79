-- limit sets how long a task may stand in line, or how long this attempt may take.
-- One that the deadline precedes is not kept.
--
--   span  ms, a string, or nil for no limit
--
-- @include arm
local function limit(k, task, at, span)
  local instant = span and at + tonumber(span)
  local final = tonumber(task["until"] or task.deadline_at)
  if instant and not (final and final <= instant) then
    task.limit_at = string.format("%d", instant)
    redis.call("HSET", k.task .. task.id, "limit_at", task.limit_at)
    arm(k, task)
  elseif task.limit_at then
    redis.call("HDEL", k.task .. task.id, "limit_at")
    task.limit_at = nil
    arm(k, task)
  end
end
