-- wake_agents counts the ends that this unit has written, and wakes the agents whose wait has fired. It cancels members that
-- these waits no longer need, whose ends can fire other waits. A call wakes at most 100 agents (tx.left.wake); the sweep
-- wakes the others.
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
-- @use task/place: line_limit, line_up, put_aside
-- @use wait/ends
-- @use wait/journal
-- @use wait/wait: forget_wait, read_wait, stop_waiting

-- wakeable decides whether an agent whose wait has fired can be woken.
local wakeable = {}

-- look_again schedules the agent for the next sweep.
function wakeable.look_again(tx, id)
  index.add(tx, tx.key.waits, string.format("%d", tx.at - 1), id)
  alarm.note(tx, tx.at)
end

-- now reports whether an agent waits and has time left. If its own limit in its owner's wait has passed, the sweep looks
-- again, because that wait may have fired before the limit, which then ends nothing.
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

-- cancel_losers cancels members that a fired wait no longer needs, by priority, up to the number that the call may still
-- cancel. It reports whether more are left.
local function cancel_losers(tx, id, w, cause)
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
    cancel_member(tx, id .. "." .. left[i], cause)
  end
  for _, name in ipairs(left) do
    if not w.gone[name] then
      return true
    end
  end
end

-- read returns the fields of the wait that are no counters. It also touches every other key that wake_agent will need: if one
-- has the wrong type, the error comes before any decision.
local function read(tx, id, w)
  local names = {"entry", "losers", "mode", "label", "digest", "members", "reason", "winner", "fired_at"}
  local f, stored = redis.call("HMGET", tx.key.wait .. id, unpack(names)), {}
  for i, name in ipairs(names) do
    stored[name] = f[i]
  end
  local details = {entry = tonumber(stored.entry), losers = w.losers or stored.losers, mode = stored.mode, label = stored.label,
    digest = stored.digest, members = stored.members, reason = w.reason or stored.reason, winner = w.winner or stored.winner,
    fired_at = w.fired_at or tonumber(stored.fired_at),
    settled = redis.call("LRANGE", tx.key.settled .. id, 0, -1)}
  for _, name in ipairs(w.names) do
    details.settled[#details.settled + 1] = name
  end
  redis.call("ZCARD", tx.key.pending .. id)
  details.collects = details.mode == "collect" and ends.kept(tx, id)
  journal.read(tx, id, string.format("%d", details.entry))
  details.decisive = details.winner and record.get(tx, id .. "." .. details.winner)
  return details, details.label .. details.digest .. details.members .. details.reason .. details.mode
end

-- wake_agent puts an agent whose wait has fired in line, and writes the result of the wait into its journal. Members that the
-- wait no longer needs are cancelled first, by priority, and at most 100 per call. The sweep continues with the rest, and
-- the call that cancels the last one wakes the agent. So the outcomes of cancelled members are final when the agent runs,
-- except for a member that still runs in its grace.
--
-- An agent whose own time is up is not woken, because it ends instead.
local function wake_agent(tx, id)
  local agent, w = record.get(tx, id), read_wait(tx, id)
  if not agent or not w or not wakeable.now(tx, agent, w) then
    return
  end
  local ok, details = pcall(read, tx, id, w)
  if not ok and refused(details) then
    error(details, 0)
  elseif not ok then
    put_aside(tx, id, reason(details), {tx.key.waits})
    return
  end
  local timed_out = details.reason == "timed_out"
  if details.losers == "cancel" and cancel_losers(tx, id, w, timed_out and "wait_timeout" or "not_needed") then
    w.changed = true
    wakeable.look_again(tx, id)
    return
  end
  if details.collects and not timed_out then
    details.settled = ends.take(tx, id)
    details.members = table.concat(details.settled, " ")
  end
  local text = verdict(details, details.reason, details.winner, details.fired_at, details.settled)
  journal.add(tx, agent, {{details.entry, text}})
  journal.drop_patience(tx, id)
  stop_waiting(tx, agent)
  if tx.root.figures then
    buckets.add(tally.of(tx, agent), "woken", tx.at - details.fired_at, 1, details.mode .. " " .. details.reason)
  end
  forget_wait(tx, agent)
  agent.status = "PENDING"
  record.set(tx, agent, "woken", "1")
  record.touch(tx, agent)
  line_up(tx, agent, false, line_limit(agent, details.fired_at))
  tell.woken(tx, agent, details, details.decisive)
  emit(tx, "all", "task_resumed", agent, "reason=" .. details.reason .. " wait_mode=" .. details.mode ..
    " entry=" .. string.format("%d", details.entry) .. " member=" .. (details.winner or ""))
end

-- count_ends counts the ends that this unit has written, each in the wait of its owner. If a wait cannot be read, only its
-- owner is put aside: the members are sound, and their ends are written.
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
