-- The controls of a queue: paused, limits of running tasks, of a rate, and of the length of its line.
--
-- @use store/later

-- has_control reports whether a queue has a control. For the queue of this call, the requested values count.
local function has_control(tx, other, queue, asked)
  local names = {"paused", "max_running", "rate", "max_length"}
  local c = redis.pcall("HMGET", tx.key.queue .. other, unpack(names))
  for i, name in ipairs(names) do
    local value = c.err or c[i]
    if other == queue and asked[name] then
      value = asked[name] ~= "" and asked[name]
    end
    if value then
      return true
    end
  end
end

-- most is how many queues are checked for a control. If there are more, the partition counts as controlled. That keeps
-- this call short; other calls then read controls that can be absent.
local most = 2000

-- controlled returns "1" if any queue has controls after this change, else nil. If none has, the other calls need
-- not read controls.
local function controlled(tx, queue, asked)
  local some, cursor, looked = {queue}, "0", 0
  repeat
    for _, other in ipairs(some) do
      if has_control(tx, other, queue, asked) then
        return "1"
      end
    end
    looked = looked + #some
    if looked > most then
      return "1"
    elseif cursor then
      local page = redis.call("SSCAN", tx.key.queues, cursor, "COUNT", "500")
      some, cursor = page[2], page[1] ~= "0" and page[1]
    else
      some = nil
    end
  until not some
end

-- change_controls writes the controls that differ from those of the queue, and reports whether any does. So a
-- repeat after a lost reply does not fill the bucket or write an event again.
--
--   about  the key of the queue's record
local function change_controls(tx, asked, about)
  local changed, bucket = false, false
  for name, value in pairs(asked) do
    local new = (redis.call("HGET", about, name) or "") ~= value
    if new and value == "" then
      later.before(tx, "HDEL", about, name)
    elseif new then
      later.before(tx, "HSET", about, name, value)
    end
    changed = changed or new
    bucket = bucket or new and (name == "rate" or name == "per_ms" or name == "burst")
  end
  if bucket then
    later.before(tx, "HDEL", about, "full_at") -- a new bucket is full
  end
  return changed
end
