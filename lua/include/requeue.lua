-- requeue makes a task whose attempt is over PENDING again: back in line, or later.
--
--   start   the instant from which on it may be fetched; at or before now: at once
--   front   it is no fault of the task: it gets its place at the front back
--   fields  name, value, ...: what the record remembers of it
--
-- Who finds the task later in the same call sees by `requeued` that it stands elsewhere now.
-- An agent that was waiting will come to the same wait again, and its limit, and its
-- patience with members, are what they were: the journal keeps of which wait they are.
--
-- @include withdraw
-- @include later
-- @include alarm
-- @include limit
-- @include ready
local function requeue(k, task, at, start, front, fields)
  local key = k.task .. task.id
  if task.waiting then
    local w = redis.call("HMGET", k.wait .. task.id, "wait_deadline_at", "digest")
    if w[1] or redis.call("EXISTS", k.patience .. task.id) == 1 then
      redis.call("HSET", k.journal .. task.id, "until", task.waiting .. " " .. (w[1] or "none") .. " " .. (w[2] or ""))
    end
  end
  withdraw(k, task)
  redis.call("HDEL", key, "worker", "lost_by")
  if task.attempt_at or task.woken then
    redis.call("HDEL", key, "attempt_at", "woken")
    task.attempt_at, task.woken = nil, nil
  end
  task.worker, task.status, task.requeued = nil, "PENDING", true
  if start > at then
    task.available_at = string.format("%d", start)
    redis.call("HSET", key, "status", "PENDING", "available_at", task.available_at, unpack(fields))
    later(k, "ZADD", k.delayed, task.id, task.available_at)
    alarm(k, start)
    limit(k, task)
  else
    redis.call("HSET", key, "status", "PENDING", unpack(fields))
    ready(k, task, at, front)
  end
end
