-- The steps of a sweep, one function per clock.
--
-- @use agent/count: count_wait, nearest_patience, watch_wait
-- @use queue/queue: count, wake
-- @use store/events: emit
-- @use store/figures: tally
-- @use store/index
-- @use store/later
-- @use store/record
-- @use store/state: final, live, nearest
-- @use store/try: attempt, reason, refused
-- @use task/claim: give_back
-- @use task/finish: load_task
-- @use task/identity: drained, drains, idempotency
-- @use task/place: line_limit, line_up, mend_place, put_aside
-- @use task/removal: hooked, remove_record, schedule_removal
-- @use wait/wait: fire, read_wait

-- tally_action counts an action of a sweep (sweep/look.lua).
local function tally_action(r, what)
  r.counts[what] = (r.counts[what] or 0) + 1
end

-- report_broken removes an unusable entry from a clock, so that it cannot block the clock, and adds the error to the results.
--
--   r  results of this unit: counts, errors, full (sweep/look.lua)
local function report_broken(tx, r, clock, member, fault)
  index.remove(tx, clock, member)
  r.counts.broken = (r.counts.broken or 0) + 1
  r.errors[#r.errors + 1] = member .. ": " .. fault
end

-- leave_clock moves a task from a clock on which it does not belong to its line or clock. A task whose record is damaged is
-- put aside.
local function leave_clock(tx, r, task, clock)
  index.remove(tx, clock, task.id)
  local fault = mend_place(tx, task)
  if fault then
    report_broken(tx, r, clock, task.id, fault)
  end
end

-- sweep_delayed puts a task in line when its start time has come, or fires a timer.
local function sweep_delayed(tx, r, id, clock)
  local task, fault = load_task(tx, id)
  if not task then
    report_broken(tx, r, clock, id, fault)
    return
  end
  local starts = task.status == "PENDING" and tonumber(task.available_at)
  if starts and starts > tx.at then
    index.add(tx, clock, task.available_at, id) -- the clock was wrong, or load_task has just retried it
    return
  end
  if starts and not task.role then
    index.remove(tx, clock, id)
    record.set(tx, task, "ready_at", task.available_at)
    record.set(tx, task, "available_at", nil)
    line_up(tx, task, false, tonumber(task.limit_at) or line_limit(task, starts)) -- older versions set no limit before
    tally_action(r, "started")
  else
    leave_clock(tx, r, task, clock)
  end
end

-- close ends a child of an ended owner. If the child ended earlier, its retention begins.
local function close(tx, r, id)
  local child, fault = record.get(tx, id)
  if not child then
    put_aside(tx, id, fault)
  elseif live(child) then
    load_task(tx, id)
    tally_action(r, "drained")
  elseif child.status and not redis.call("ZSCORE", tx.key.retained, id) then
    schedule_removal(tx, child)
  end
end

-- sweep_draining ends the children of an ended task. All owners of a sweep share one chunk of children, because one owner can
-- have any number.
local function sweep_draining(tx, r, id, clock)
  r.full = true
  if r.chunk == 0 then
    return
  end
  local key = tx.key.children .. id
  local ids = attempt("LRANGE", key, 0, r.chunk - 1)
  if ids.err then
    put_aside(tx, id, ids.err)
    report_broken(tx, r, clock, id, ids.err)
    return
  end
  local owner = record.get(tx, id)
  if owner and live(owner) then -- the entry is wrong
    index.remove(tx, clock, id)
    return
  end
  record.load(tx, ids)
  for _, child in ipairs(ids) do
    tx.on = child
    close(tx, r, child)
  end
  later.after(tx, "LTRIM", key, #ids, -1)
  if #ids < r.chunk then
    index.remove(tx, clock, id)
    drains(tx, id, false)
  end
  r.chunk = r.chunk - #ids
end

-- sweep_forget frees an idempotency key whose time is up.
local function sweep_forget(tx, _, key, clock)
  idempotency.free(tx, key)
  index.remove(tx, clock, key)
end

-- warn writes the event deadline_near, once for each task.
local function warn(tx, r, task)
  local last = final(task)
  emit(tx, "terminal", "deadline_near", task, "deadline_at=" .. string.format("%d", last) ..
    " left_ms=" .. string.format("%d", math.max(last - tx.at, 0)) .. " status=" .. task.status)
  record.set(tx, task, "warn_at", nil)
  tally_action(r, "warned")
end

-- sweep_limits handles a task that is due on the clock deadlines or limits (store/state.lua): load_task ends it if its time
-- is up. A task that lives on gets its next instant on the clock, because the record decides and not the entry.
local function sweep_limits(tx, r, id, clock)
  local task, fault = load_task(tx, id)
  if not task then
    report_broken(tx, r, clock, id, fault)
    return
  end
  local score
  if live(task) then
    if task.warn_at and tonumber(task.warn_at) < tx.at then
      warn(tx, r, task)
    end
    score = clock == tx.key.deadlines and task.deadline_at or clock == tx.key.limits and nearest(task)
  end
  if score then
    index.add(tx, clock, string.format("%d", score), id)
  else
    leave_clock(tx, r, task, clock)
  end
end

-- sweep_retained removes the record of an ended task after its retention. A sweep also has a limit in bytes, because freeing a
-- megabyte takes as long as ending ten tasks.
local function sweep_retained(tx, r, id, clock)
  if r.bytes > 16777216 then
    r.full = true
    return
  end
  local task, fault = record.get(tx, id)
  if not task then
    put_aside(tx, id, fault)
    report_broken(tx, r, clock, id, fault)
    return
  elseif task.children and drained(tx, id) or hooked(tx, task) then
    index.add(tx, clock, string.format("%d", tx.at + 1000), id) -- its children or its hook still need it
    return
  end
  if task.status and not live(task) then
    r.bytes = r.bytes + remove_record(tx, task)
    tally_action(r, "removed")
  end
  index.remove(tx, clock, id)
end

-- sweep_throttled wakes a worker of a queue when its rate allows another task.
local function sweep_throttled(tx, _, queue, clock)
  index.remove(tx, clock, queue)
  wake.note(tx, queue)
end

-- is_due reports whether a clock still has an entry that is due by an instant. An unreadable clock counts as empty, because
-- otherwise no wait could time out.
local function is_due(tx, clock, instant)
  local some = attempt("ZRANGEBYSCORE", clock, "-inf", string.format("%d", instant), "LIMIT", 0, index.removals(tx, clock) + 1)
  for _, id in ipairs(some) do
    if not index.removed(tx, clock, id) then
      return true
    end
  end
end

-- read returns the fields of the wait that are no counters. ZCARD raises an error here if a key has the wrong type.
local function read(tx, id)
  redis.call("ZCARD", tx.key.pending .. id)
  local f = redis.call("HMGET", tx.key.wait .. id, "on_pending", "on_timeout", "mode", "since", "size")
  redis.call("ZCARD", tx.key.patience .. id)
  return {on_pending = f[1], on_timeout = f[2], mode = f[3], since = f[4], size = f[5]}
end

local function time_out(tx, r, agent, w, details)
  w.state, w.reason, w.losers, w.fired_at, w.changed = "fired", "timed_out", details.on_pending, w.ends, true
  emit(tx, "terminal", "wait_timed_out", agent, "timeout_type=synchronization policy_applied=" .. details.on_timeout ..
    " timeout_duration_ms=" .. string.format("%d", w.ends - (w.first_at or details.since)) .. " wait_mode=" .. details.mode ..
    " settled=" .. string.format("%d", w.settled) .. " members=" .. details.size .. " wait_deadline_at=" .. string.format("%d", w.ends) ..
    " detected_at=" .. tx.now .. " lag_ms=" .. string.format("%d", tx.at - w.ends))
  tally.timeout(tx, agent, " wait timeout " .. details.on_timeout, "synchronization", w.ends)
  tally_action(r, "waits_timed_out")
end

-- end_what_is_due ends overdue members, and then the wait if its limit has passed. It returns true if more tasks must end
-- before the wait can be decided.
local function end_what_is_due(tx, r, agent, w, details)
  if count_wait(tx, agent.id, w, {}, math.min(w.ends or tx.at, tx.at)) then
    return true
  end
  local ends, key = w.ends, tx.key
  if w.state == "open" and ends and ends < tx.at then
    -- Members that are still due by the limit ended before it. Timers are on the clock delayed.
    if is_due(tx, key.deadlines, ends) or is_due(tx, key.limits, ends) or is_due(tx, key.delayed, ends) then
      return true
    end
    time_out(tx, r, agent, w, details)
  end
end

-- sweep_waits handles a wait whose limit has passed, or that has fired and still has members to cancel. Members whose own
-- time was up by then end first, so that the counts do not depend on when a reaper sweeps.
local function sweep_waits(tx, r, id, clock)
  local agent, fault = load_task(tx, id)
  if not agent then
    report_broken(tx, r, clock, id, fault)
    return
  elseif agent.status ~= "WAITING" then
    leave_clock(tx, r, agent, clock)
    return
  end
  local w, ok, details
  w, fault = read_wait(tx, id)
  if w then
    ok, details = pcall(read, tx, id)
    fault = not ok and reason(details)
  end
  if not ok and refused(fault) then
    error(fault, 0)
  elseif not ok then
    put_aside(tx, id, fault, {clock})
    report_broken(tx, r, clock, id, fault)
    return
  end
  if w.state == "open" and end_what_is_due(tx, r, agent, w, details) then
    r.full = true
  end
  if w.state == "fired" then
    index.remove(tx, clock, id)
    fire(tx, id)
  else
    watch_wait(tx, id, w.ends, nearest_patience(tx, id))
  end
end

-- sweep_workers gives back the claims of a worker whose lease has expired, one batch per sweep.
local function sweep_workers(tx, r, worker, clock)
  local claims = tx.key.claims .. worker
  local ids = attempt("ZREVRANGE", claims, 0, r.batch - 1) -- newest first: each goes to the front of its line
  if ids.err then
    put_aside(tx, worker, ids.err, {})
    count.again(tx, true)
    report_broken(tx, r, clock, worker, ids.err)
    return
  end
  record.load(tx, ids)
  for _, id in ipairs(ids) do
    local held, fault = give_back(tx, id, worker, true)
    if held then
      tally_action(r, "given_back")
    elseif fault then
      report_broken(tx, r, claims, id, fault)
    end
  end
  if #ids == r.batch then
    r.full = true
  else
    index.remove(tx, clock, worker)
    later.after(tx, "DEL", claims, tx.key.worker .. worker)
  end
end
