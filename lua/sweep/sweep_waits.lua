-- sweep_waits handles the wait of an agent that is out of time, or that has fired and has members left to end.
-- Members whose own time was up by then end first. So the counts do not depend on when a reaper sweeps.
--
-- @use agent/count_wait
-- @use agent/nearest_patience
-- @use agent/watch_wait
-- @use store/attempt
-- @use store/emit
-- @use store/index
-- @use store/own
-- @use store/reason
-- @use store/refused
-- @use store/tally
-- @use sweep/did
-- @use sweep/leave_clock
-- @use sweep/met_broken
-- @use task/load_task
-- @use task/put_aside
-- @use wait/read_wait

-- is_due reports whether a clock still has an entry that is due by an instant. A clock that cannot be read has none:
-- the caller is not at fault.
local function is_due(tx, clock, instant)
  local some = attempt("ZRANGEBYSCORE", clock, "-inf", string.format("%d", instant), "LIMIT", 0, index.removals(tx, clock) + 1)
  for _, id in ipairs(some) do
    if not index.removed(tx, clock, id) then
      return true
    end
  end
end

-- read returns the stored fields of the wait that are not counters.
local function read(tx, id)
  redis.call("ZCARD", tx.key.pending .. id)
  local f = redis.call("HMGET", tx.key.wait .. id, "on_pending", "on_timeout", "mode", "since", "size")
  redis.call("ZCARD", tx.key.patience .. id)
  return {on_pending = f[1], on_timeout = f[2], mode = f[3], since = f[4], size = f[5]}
end

local function time_out(tx, r, agent, w, told)
  w.state, w.reason, w.losers, w.fired_at, w.changed = "fired", "timed_out", told.on_pending, w.ends, true
  emit(tx, "terminal", "wait_timed_out", agent, "timeout_type=synchronization policy_applied=" .. told.on_timeout ..
    " timeout_duration_ms=" .. string.format("%d", w.ends - (w.first_at or told.since)) .. " wait_mode=" .. told.mode ..
    " settled=" .. string.format("%d", w.settled) .. " members=" .. told.size .. " wait_deadline_at=" .. string.format("%d", w.ends) ..
    " detected_at=" .. tx.now .. " lag_ms=" .. string.format("%d", tx.at - w.ends))
  tally.timeout(tx, agent, " wait timeout " .. told.on_timeout, "synchronization", w.ends)
  did(r, "waits_timed_out")
end

-- end_what_is_due ends members that are out of time, and then the wait if its time is up. It returns true if more
-- must end before the wait can be decided.
local function end_what_is_due(tx, r, agent, w, told)
  if count_wait(tx, agent.id, w, {}, math.min(w.ends or tx.at, tx.at)) then
    return true
  end
  local ends, key = w.ends, tx.key
  if w.state == "open" and ends and ends < tx.at then
    -- Timers fire on the clock delayed.
    if is_due(tx, key.deadlines, ends) or is_due(tx, key.limits, ends) or is_due(tx, key.delayed, ends) then
      return true
    end
    time_out(tx, r, agent, w, told)
  end
end

local function sweep_waits(tx, r, id, clock)
  local agent, why = load_task(tx, id)
  if not agent then
    met_broken(tx, r, clock, id, why)
    return
  elseif agent.status ~= "WAITING" then
    leave_clock(tx, r, agent, clock)
    return
  end
  local w, ok, told
  w, why = read_wait(tx, id)
  if w then
    ok, told = pcall(read, tx, id)
    why = not ok and reason(told)
  end
  if not ok and refused(why) then
    error(why, 0)
  elseif not ok then
    put_aside(tx, id, why, {clock})
    met_broken(tx, r, clock, id, why)
    return
  end
  if w.state == "open" and end_what_is_due(tx, r, agent, w, told) then
    r.full = true
  end
  if w.state == "fired" then
    index.remove(tx, clock, id)
    local fired = own(tx, "fired")
    fired[#fired + 1] = id
  else
    watch_wait(tx, id, w.ends, nearest_patience(tx, id))
  end
end
