-- requeue makes a RUNNING task PENDING again: back in line, or later.
--
--   start   the instant from which on it may be fetched; at or before now: at once
--   front   it is no fault of the task: it gets its place at the front back
--   fields  name, value, ...: what the record remembers of it
--
-- @include withdraw
-- @include later
-- @include alarm
-- @include limit
-- @include ready
local function requeue(k, task, at, start, front, fields)
  local key = k.task .. task.id
  withdraw(k, task)
  task.worker, task.status = nil, "PENDING"
  redis.call("HDEL", key, "worker", "lost_by")
  if start > at then
    task.available_at = string.format("%d", start)
    redis.call("HSET", key, "status", "PENDING", "available_at", task.available_at, unpack(fields))
    later(k, "ZADD", k.delayed, task.id, task.available_at)
    alarm(k, start)
    limit(k, task, at)
  else
    redis.call("HSET", key, "status", "PENDING", unpack(fields))
    ready(k, task, at, front)
  end
end
