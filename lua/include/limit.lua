-- limit sets a task's next non-final instant: how long it may stand in line, or
-- how long this attempt may take. One that the deadline precedes is not kept.
--
--   span  ms, a string, or nil for no limit
--
-- @include later
-- @include alarm
local function limit(k, task, at, span)
  local instant = span and at + tonumber(span)
  local final = tonumber(task["until"] or task.deadline_at)
  if instant and not (final and final <= instant) then
    task.limit_at = string.format("%d", instant)
    redis.call("HSET", k.task .. task.id, "limit_at", task.limit_at)
    later(k, "ZADD", k.limits, task.id, task.limit_at)
    alarm(k, instant)
  elseif task.limit_at then
    redis.call("HDEL", k.task .. task.id, "limit_at")
    later(k, "ZREM", k.limits, task.id)
    task.limit_at = nil
  end
end
