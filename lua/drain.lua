-- drain: somebody empties the line of a queue: what stands in it, and may start now,
-- is cancelled, in chunks. What runs, and what may start later only, is left alone.
--
-- KEYS[1]  root of the partition
-- ARGV[1]  call: kept over repeats of this call, and new for each chunk
-- ARGV[2]  queue
-- ARGV[3]  how many at the most, up to 500
-- ARGV[4]  reason, opaque; "" for none
--
-- Returns  {"OK", n, left}  n were cancelled, also when this call had done it before;
--                           left stand in line still
-- Ends     CANCELLED, and FAILED what is late
-- Flags    allow-oom        a full Redis must still drain
--
-- @include keys
-- @include now
-- @include overdue
-- @include cancelled
-- @include finish
-- @include guard
-- @include later
-- @include flush
-- @include complete

local k, at = keys(KEYS[1]), now()
local call, queue, most, reason = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
if not most or most < 1 or most > 500 then
  error("drain: " .. tostring(ARGV[3]) .. " is no count of tasks, 500 at the most", 0)
end

-- A key of the wrong type must be met before the first write.
local known = redis.call("SISMEMBER", k.queues, queue) == 1
local last = redis.call("HMGET", k.queue .. queue, "drained_by", "drained")
local n = tonumber(last[2])
if last[1] ~= call then
  n = 0
  local function close(id)
    local task = overdue(k, id, at)
    if task.status == "PENDING" then
      finish(k, task, cancelled(reason, {"call", call}), at)
      return 1
    end
    later(k, "ZREM", k.ready .. queue, id) -- the record decides, and the line was wrong
    return 0
  end
  for _, id in ipairs(redis.call("ZRANGE", k.ready .. queue, 0, most - 1)) do
    local closed, why = guard(k, id, at, close, id)
    if why then
      redis.call("ZREM", k.ready .. queue, id)
    end
    n = n + (closed or 0)
  end
  if known then
    redis.call("HSET", k.queue .. queue, "drained_by", call, "drained", n)
  end
end
complete(flush(k, at))
return {"OK", n, redis.call("ZCARD", k.ready .. queue)}
