-- wake_agents counts the ends that this unit has written, and wakes the agents whose wait has fired. The losers that it
-- cancels can make other waits fire. A call wakes at most 100 agents (tx.left.wake); the sweep wakes the others.
--
-- @use agent/count: cancel_member, count_wait
-- @use agent/rules: verdict
-- @use store/events: emit
-- @use store/figures: buckets, tally
-- @use store/index
-- @use store/messages: alarm
-- @use store/record
-- @use store/tell
-- @use store/try: reason, refused
-- @use task/ending
-- @use task/place: line_up, put_aside
-- @use wait/ends
-- @use wait/journal
-- @use wait/wait: forget_wait, read_wait, stop_waiting

-- wakeable says whether an agent whose wait has fired can be woken.
local wakeable = {}

-- look_again has the sweep look at the agent again.
function wakeable.look_again(tx, id)
  index.add(tx, tx.key.waits, string.format("%d", tx.at - 1), id)
  alarm.note(tx, tx.at)
end

-- now reports whether an agent waits and has time left. If its own limit in its owner's wait is over, that wait may
-- have been decided before, and then the limit ends nothing: the sweep looks again.
function wakeable.now(tx, agent, w)
  if w.state ~= "fired" or agent.status ~= "WAITING" or agent.limit_at and tonumber(agent.limit_at) < tx.at then
    return false
  end
  local over = ending(tx, agent)
  if over and over.reason == "wait_timeout" then
    wakeable.look_again(tx, agent.id)
  end
  return not over
end

-- cancel_losers cancels members that a decided wait no longer needs, by priority, as many as this call can still
-- cancel. It reports whether more are left.
local function cancel_losers(tx, id, w, why)
  local key = tx.key.pending .. id
  local left = {}
  for _, name in ipairs(redis.call("ZRANGE", key, 0, tx.left.cancel + index.removals(tx, key))) do
    if not w.gone[name] then
      left[#left + 1] = name
    end
  end
  for i = 1, math.min(#left, tx.left.cancel) do
    w.gone[left[i]] = true
    index.remove(tx, key, left[i])
    tx.left.cancel = tx.left.cancel - 1
    cancel_member(tx, id .. "." .. left[i], why)
  end
  for _, name in ipairs(left) do
    if not w.gone[name] then
      return true
    end
  end
end

-- read returns the stored fields of the wait beside its counters. It reads every key that may be of the wrong type, so
-- that nothing raises after something was decided.
local function read(tx, id, w)
  local names = {"entry", "losers", "mode", "label", "digest", "members", "reason", "winner", "fired_at"}
  local f, known = redis.call("HMGET", tx.key.wait .. id, unpack(names)), {}
  for i, name in ipairs(names) do
    known[name] = f[i]
  end
  local told = {entry = tonumber(known.entry), losers = w.losers or known.losers, mode = known.mode, label = known.label,
    digest = known.digest, members = known.members, reason = w.reason or known.reason, winner = w.winner or known.winner,
    fired_at = w.fired_at or tonumber(known.fired_at),
    settled = redis.call("LRANGE", tx.key.settled .. id, 0, -1)}
  for _, name in ipairs(w.names) do
    told.settled[#told.settled + 1] = name
  end
  redis.call("ZCARD", tx.key.pending .. id)
  told.collects = told.mode == "collect" and ends.kept(tx, id)
  journal.read(tx, id, string.format("%d", told.entry))
  told.decisive = told.winner and record.get(tx, id .. "." .. told.winner)
  return told, told.label .. told.digest .. told.members .. told.reason .. told.mode
end

-- wake_agent wakes an agent whose wait has fired: the agent is in line again, and its journal has the result of the
-- wait. Members that the wait no longer needs are cancelled first, by priority and at most 100 a call, over all
-- waits. The sweep continues with the rest, and the call that cancels the last of them wakes the agent. So the
-- outcomes of cancelled members are final when the agent runs, except of a member that still runs in its grace.
--
-- An agent that is itself out of time is not woken: it ends.
local function wake_agent(tx, id)
  local agent, w = record.get(tx, id), read_wait(tx, id)
  if not agent or not w or not wakeable.now(tx, agent, w) then
    return
  end
  local ok, told = pcall(read, tx, id, w)
  if not ok and refused(told) then
    error(told, 0)
  elseif not ok then
    put_aside(tx, id, reason(told), {tx.key.waits})
    return
  end
  local timed_out = told.reason == "timed_out"
  if told.losers == "cancel" and cancel_losers(tx, id, w, timed_out and "wait_timeout" or "not_needed") then
    w.changed = true
    wakeable.look_again(tx, id)
    return
  end
  if told.collects and not timed_out then
    told.settled = ends.take(tx, id)
    told.members = table.concat(told.settled, " ")
  end
  local text = verdict(told, told.reason, told.winner, told.fired_at, told.settled)
  journal.add(tx, agent, {{told.entry, text}})
  journal.drop_patience(tx, id)
  stop_waiting(tx, agent)
  if tx.root.figures then
    buckets.add(tally.of(tx, agent), "woken", tx.at - told.fired_at, 1, told.mode .. " " .. told.reason)
  end
  forget_wait(tx, agent)
  agent.status = "PENDING"
  record.set(tx, agent, "woken", "1")
  record.touch(tx, agent)
  line_up(tx, agent)
  tell.woken(tx, agent, told, told.decisive)
  emit(tx, "all", "task_resumed", agent, "reason=" .. told.reason .. " wait_mode=" .. told.mode ..
    " entry=" .. string.format("%d", told.entry) .. " member=" .. (told.winner or ""))
end

-- count_ends counts the ends of members that this unit has written, each in the wait of its owner. If a wait cannot be
-- read, its owner is put aside, and its members are not.
local function count_ends(tx)
  local noted, before = tx.waits.noted, tx.on
  while noted[1] do
    local id = table.remove(noted, 1)
    local members = noted[id]
    noted[id] = nil
    local w = tx.waits.of[id]
    if w.broken then
      put_aside(tx, id, w.broken, {tx.key.waits})
    elseif w == members.wait and (w.state == "open" or w.state == "forming") then
      tx.on = id
      count_wait(tx, id, w, members)
    end
  end
  tx.on = before
end

local function wake_agents(tx)
  local n = 1
  count_ends(tx)
  local fired, left = tx.waits.fired, tx.left
  while fired[n] do
    local id = fired[n]
    n = n + 1
    if left.wake > 0 then
      left.wake, tx.on = left.wake - 1, id
      wake_agent(tx, id)
    else
      wakeable.look_again(tx, id)
    end
    count_ends(tx)
  end
  tx.on = false
end
