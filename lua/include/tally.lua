-- tally counts a member's end in the wait that its owner is at. It costs the same
-- whatever the number of members. ZREM first: an end counts once, and only that of a
-- member that the wait still has. The count is written by tallied.lua.
--
-- What ended after the wait's limit is not counted, whoever is seen first: the sweep
-- ends the wait. A wait that fires is noted for flush, which wakes the owner.
--
-- @include regard
-- @include reached
-- @include later
-- @include alarm

-- counters are those of a wait, with what else it takes to count in it.
local function counters(k, parent)
  local w = redis.call("HMGET", k.wait .. parent, "state", "wait_deadline_at", "ok", "bad", "settled",
    "need_ok", "most_bad", "all", "mask", "masks", "limit_ms", "first_at")
  return {state = w[1], ends = tonumber(w[2]), ok = tonumber(w[3]), bad = tonumber(w[4]), settled = tonumber(w[5]),
    need_ok = tonumber(w[6]), most_bad = tonumber(w[7]), all = tonumber(w[8]), mask = w[9], masks = w[10],
    limit_ms = w[11], first_at = w[12], names = {}}
end

local function tally(k, task, parent, at)
  local known, name = k.kin[parent], string.sub(task.id, #parent + 2)
  known.wait = known.wait or counters(k, parent)
  local c = known.wait
  local state, ends, ended = c.state, c.ends, tonumber(task.completed_at)
  if state ~= "open" and state ~= "forming" or ends and ended > ends then
    return
  end
  if redis.call("ZREM", k.pending .. parent, name) == 0 then
    return
  end
  c.names[#c.names + 1], c.settled = name, c.settled + 1
  local mask = c.masks and redis.call("HGET", k.wait .. parent, "mask " .. name) or c.mask
  local as = regard(mask, task)
  if as == "o" then
    c.ok = c.ok + 1
  elseif as == "b" then
    c.bad = c.bad + 1
  end
  local fires = state == "open" and reached(c)
  if fires then
    c.state, c.reason, c.winner = "fired", fires, name
    k.fired[#k.fired + 1] = parent
  end
  if c.limit_ms and not ends and not c.first_at then -- its limit begins with the first end
    ends = ended + c.limit_ms
    c.ends, c.first_at = ends, task.completed_at
    redis.call("HSET", k.wait .. parent, "first_at", task.completed_at, "wait_deadline_at", string.format("%d", ends))
    if state == "open" and not fires then
      local patience = redis.call("ZRANGE", k.patience .. parent, 0, 0, "WITHSCORES")[2]
      local first = math.min(ends, tonumber(patience) or math.huge)
      later(k, "ZADD", k.waits, parent, string.format("%d", first))
      alarm(k, first)
    end
  end
end
