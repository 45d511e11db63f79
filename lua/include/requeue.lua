-- requeue makes a RUNNING task PENDING again: back in line, or later.
--
--   delay   ms before it may be fetched, 0 for at once
--   front   it is no fault of the task: it gets its place at the front back
--   fields  name, value, ...: what the record remembers of it
--
-- @include withdraw
-- @include later
-- @include alarm
-- @include ready
local function requeue(k, task, at, delay, front, fields)
  local key = k.task .. task.id
  withdraw(k, task)
  task.limit_at, task.worker, task.status = nil, nil, "PENDING"
  redis.call("HDEL", key, "worker", "limit_at", "lost_by")
  if delay > 0 then
    task.available_at = string.format("%d", at + delay)
    redis.call("HSET", key, "status", "PENDING", "available_at", task.available_at, unpack(fields))
    later(k, "ZADD", k.delayed, task.id, task.available_at)
    alarm(k, at + delay)
  else
    redis.call("HSET", key, "status", "PENDING", unpack(fields))
    ready(k, task, at, front)
  end
end
