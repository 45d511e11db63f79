-- conclude wakes an agent whose wait has fired, once: it stands in line again, and its
-- journal says how the wait ended. Members that nobody needs any more end first, by
-- priority and 100 a call, of however many waits; the sweep goes on with what is left,
-- and the agent is woken by the call that ends the last of them. So all outcomes are final
-- when it wakes.
--
-- An agent that is itself out of time is not woken. Its end is what comes next.
--
-- @include record
-- @include ending
-- @include lose
-- @include verdict
-- @include later
-- @include alarm
-- @include count
-- @include ready
-- @include remember
-- @include drop
-- @include emit
-- @include guard
local function conclude(k, id, at)
  local f = redis.call("HMGET", k.wait .. id, "state", "reason", "winner", "entry", "losers", "wait_deadline_at", "mode",
    "label", "digest", "members")
  local agent = record(k, id)
  if f[1] ~= "fired" or agent.status ~= "WAITING" or ending(k, agent, at) or
    agent.limit_at and tonumber(agent.limit_at) < at then
    return
  end

  local timed_out = f[2] == "timed_out"
  if f[5] == "cancel" then
    local losers = k.losers > 0 and redis.call("ZPOPMIN", k.pending .. id, k.losers) or {}
    k.losers = k.losers - #losers / 2
    for i = 1, #losers, 2 do
      local loser = id .. "." .. losers[i]
      guard(k, loser, at, lose, k, loser, timed_out and "wait_timeout" or "not_needed", at)
    end
    if redis.call("ZCARD", k.pending .. id) > 0 then
      later(k, "ZADD", k.waits, id, string.format("%d", at - 1))
      alarm(k, at)
      return
    end
  end

  -- A wait that timed out did so at its limit, whenever that was seen.
  local w = {label = f[8], digest = f[9], members = f[10]}
  local settled = redis.call("LRANGE", k.settled .. id, 0, -1)
  remember(k, agent, {{tonumber(f[4]), verdict(w, f[2], f[3], timed_out and tonumber(f[6]) or at, settled)}})
  redis.call("UNLINK", k.patience .. id)
  later(k, "ZREM", k.waits, id)
  count(k, agent.queue, "waiting", -1)
  drop(k, agent)
  agent.status, agent.woken = "PENDING", "1"
  redis.call("HSET", k.task .. id, "status", "PENDING", "woken", "1")
  ready(k, agent, at)
  emit(k, "all", "task_resumed", agent, at, "reason", f[2], "wait_mode", f[7], "entry", f[4])
end
