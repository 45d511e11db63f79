-- repair_queue lists a queue, and makes its wake token and its place on the clock `throttled` agree with its controls.
--
-- @use store/later
-- @use queue/wake
-- @use repair/mend
local function repair_queue(tx, _, name)
  local r, about, token = {}, tx.key.queue .. name, tx.key.wake .. name
  local paused, rate = unpack(redis.call("HMGET", about, "paused", "rate"))
  if redis.call("EXISTS", about) == 1 and redis.call("SISMEMBER", tx.key.queues, name) == 0 then
    later.before(tx, "SADD", tx.key.queues, name)
    r[#r + 1] = "add to queues"
  end
  if not rate then
    mend.must(tx, r, "throttled", name)
  end
  if redis.call("LLEN", token) > (paused and 0 or 1) then
    later.drop(tx, token)
    wake.note(tx, name)
    r[#r + 1] = "delete wake:" .. name
  end
  return r
end
