-- wake_agent wakes an agent whose wait has fired: the agent is in line again, and its journal has the result of the
-- wait. Members that the wait no longer needs are cancelled first, by priority and at most 100 a call, over all
-- waits. The sweep continues with the rest, and the call that cancels the last of them wakes the agent. So the
-- outcomes of cancelled members are final when the agent runs, except of a member that still runs in its grace.
--
-- An agent that is itself out of time is not woken: it ends.
--
-- @use store/refused
-- @use store/buckets
-- @use store/emit
-- @use store/reason
-- @use store/record
-- @use store/tally
-- @use store/tell
-- @use task/line_up
-- @use task/put_aside
-- @use agent/cancel_losers
-- @use wait/ends
-- @use wait/forget_wait
-- @use wait/journal
-- @use wait/read_wait
-- @use wait/stop_waiting
-- @use agent/verdict
-- @use agent/wakeable

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
