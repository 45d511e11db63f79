-- control: somebody says how much a queue may give: nothing (paused), to so many
-- running tasks at once, so many in a time. The controls hold in this partition.
--
-- KEYS[1]  root of the partition
-- ARGV[1]  queue
-- ARGV[2…] name, value, …; "" takes a control away. What is not named stays.
--            paused                 1
--            max_running            tasks running at once, at least 1
--            rate, per_ms, burst    so many tasks in so many ms, and at once after a rest;
--                                   all three or none
--
-- Returns  {"OK", known, ready}     known is 1 if the queue was there before, 0 if this
--                                   call made it (a repeat finds it there); ready is how
--                                   many tasks stand in line
--          {"INVALID", field, why}  nothing was changed
-- Flags    allow-oom        a full Redis must still be paused
--
-- @include keys
-- @include now
-- @include root
-- @include emit
-- @include flush
-- @include complete

local k, at = keys(KEYS[1]), now()
local queue = ARGV[1]
local names = {paused = 1, max_running = 1, rate = 1, per_ms = 1, burst = 1}

local function invalid(asked)
  if not queue or #queue > 128 or not string.find(queue, "^%w[%w._-]*$") then
    return "queue", "must be 1 to 128 of A-Z a-z 0-9 . _ - and begin with a letter or digit"
  end
  for name, value in pairs(asked) do
    local n = tonumber(value)
    if not names[name] then
      return name, "is not a control of a queue"
    elseif value ~= "" and (not n or not string.find(value, "^%d+$") or n < 1 or n > 9007199254740992) then
      return name, "must be a whole number of at least 1, or empty for none"
    end
  end
  if (asked.rate == nil) ~= (asked.per_ms == nil) or (asked.rate == nil) ~= (asked.burst == nil) or
    (asked.rate == "") ~= (asked.per_ms == "") or (asked.rate == "") ~= (asked.burst == "") then
    return "rate", "goes with per_ms and burst: give all three, or none"
  end
end

local asked, told = {}, {}
if #ARGV > 0 and #ARGV % 2 == 0 then
  return {"INVALID", tostring(ARGV[#ARGV]), "has no value; give an empty one to take it away"}
end
for i = 2, #ARGV, 2 do
  asked[ARGV[i]] = ARGV[i + 1] or ""
  told[i - 1], told[i] = ARGV[i], ARGV[i + 1] or ""
end
local field, why = invalid(asked)
if field then
  return {"INVALID", field, why}
end

-- A key of the wrong type must be met before the first write.
redis.call("HLEN", k.root)
redis.call("ZCARD", k.throttled)
root(k)
local ready = redis.call("ZCARD", k.ready .. queue)
redis.call("LLEN", k.wake .. queue)
redis.call("HLEN", k.queue .. queue)
local known = 1 - redis.call("SADD", k.queues, queue)

-- What is so already is no change: a repeat after a lost answer must not fill the bucket
-- again, nor tell again.
local changed, bucket = false, false
for name, value in pairs(asked) do
  local new
  if value == "" then
    new = redis.call("HDEL", k.queue .. queue, name) == 1
  else
    new = redis.call("HGET", k.queue .. queue, name) ~= value
    redis.call("HSET", k.queue .. queue, name, value)
  end
  changed = changed or new
  bucket = bucket or new and (name == "rate" or name == "per_ms" or name == "burst")
end
if bucket then
  redis.call("HDEL", k.queue .. queue, "full_at") -- a new bucket is full
end

-- controlled says whether any queue has controls, so that the others cost nothing.
k.controlled = false
for _, other in ipairs(redis.call("SMEMBERS", k.queues)) do
  local c = redis.pcall("HMGET", k.queue .. other, "paused", "max_running", "rate")
  k.controlled = k.controlled or c.err or c[1] or c[2] or c[3]
end
if k.controlled then
  redis.call("HSET", k.root, "controlled", "1")
else
  redis.call("HDEL", k.root, "controlled")
end
redis.call("ZREM", k.throttled, queue)
redis.call("DEL", k.wake .. queue)
if ready > 0 then
  k.woken[queue] = true
end
if changed then
  emit(k, "all", "queue_controlled", {id = "", queue = queue}, at, unpack(told))
end
complete(flush(k, at))
return {"OK", known, ready}
