-- sweep: a reaper ends, starts and removes what is due, on all clocks.
--
-- KEYS[1]  root of the partition
-- ARGV[1]  reaper
-- ARGV[2]  how many tasks of a clock at the most
-- ARGV[3]  ms of fall-back: the longest that a reaper rests
--
-- Take, end, wake and emit are one script, so a reaper killed anywhere loses
-- nothing. Oldest first; a clock that had a full batch means: again, at once.
-- A clock that cannot be read, and a record that cannot be worked with, hold up
-- nothing else.
--
-- Returns  {now, wait, turn, {name, n, …}, error, …}
--            wait  ms until something is due, at most the fall-back
--            turn  1: this reaper has the turn and is to be precise; 0: another has it
-- Ends     FAILED, CANCELLED
-- Flags    allow-oom        a full Redis must still drain
--
-- @include keys
-- @include now
-- @include live
-- @include nearest
-- @include emit
-- @include root
-- @include drains
-- @include overdue
-- @include give_back
-- @include lose
-- @include later
-- @include ready
-- @include retain
-- @include guard
-- @include shield
-- @include tallied
-- @include flush

local k, at = keys(KEYS[1]), now()
local reaper, batch, fallback = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local counts, errors, full = {}, {}, false

local function did(what)
  counts[what] = (counts[what] or 0) + 1
end

-- warn tells, once, that most of a task's time is over.
local function warn(task)
  local final = task["until"] or task.deadline_at
  emit(k, "terminal", "deadline_near", task, at, "deadline_at", final,
    "left_ms", string.format("%d", math.max(final - at, 0)), "status", task.status)
  redis.call("HDEL", k.task .. task.id, "warn_at")
  task.warn_at = nil
  did("warned")
end

-- ended: its deadline is over, or its nearest instant (nearest.lua), if the record says
-- so too. If it lives on, the clock gets what the record says.
local function ended(clock)
  return function(id)
    local task = overdue(k, id, at)
    local score
    if live(task) then
      if task.warn_at and tonumber(task.warn_at) < at then
        warn(task)
      end
      score = clock == k.deadlines and task.deadline_at or clock == k.limits and nearest(task)
    end
    if score then
      later(k, "ZADD", clock, id, string.format("%d", score))
    else
      later(k, "ZREM", clock, id)
    end
  end
end

-- impatient: a member has a limit of its own in the wait of an agent, and it is over. It
-- ended then, whenever that was seen. One after the limit of the wait, which may begin
-- with such an end, never comes. It tells whether there are more than one call may end.
local function impatient(id)
  local key = k.patience .. id
  local due = redis.call("ZRANGEBYSCORE", key, "-inf", "(" .. string.format("%d", at), "WITHSCORES", "LIMIT", 0, k.losers + 1)
  local more = #due > 2 * k.losers
  for i = 1, math.min(#due, 2 * k.losers), 2 do
    local name, ends = due[i], tonumber(redis.call("HGET", k.wait .. id, "wait_deadline_at"))
    if ends and tonumber(due[i + 1]) > ends then
      more = false
      break
    end
    redis.call("ZREM", key, name)
    if redis.call("ZSCORE", k.pending .. id, name) then
      guard(k, id .. "." .. name, at, lose, k, id .. "." .. name, "patience", at, tonumber(due[i + 1]))
    end
    k.losers = k.losers - 1
  end
  tallied(k, at)
  return more
end

-- due_by tells whether something is due on a clock that was so at an instant already. On
-- one that cannot be read nothing is: that is no fault of who asks.
local function due_by(clock, instant)
  return #redis.pcall("ZRANGEBYSCORE", clock, "-inf", instant, "LIMIT", 0, 1) > 0
end

-- watch has the sweep look at a wait again when its limit, or its patience with a member,
-- is over.
local function watch(id, ends)
  local first = tonumber(ends)
  local patience = tonumber(redis.call("ZRANGE", k.patience .. id, 0, 0, "WITHSCORES")[2])
  if patience and not (first and first <= patience) then
    first = patience
  end
  if first then
    later(k, "ZADD", k.waits, id, string.format("%d", first))
  else
    later(k, "ZREM", k.waits, id)
  end
end

-- waited: the wait of an agent is out of time, or has fired and has members left to end.
-- Members whose own time was up by then end first, so that what is counted does not
-- depend on who looks when.
local flushed = false
local function waited(id)
  if not flushed then
    flushed = true
    errors[#errors + 1] = flush(k, at) -- who ended in this sweep is counted, and off the clocks
  end
  local task = overdue(k, id, at)
  if task.status ~= "WAITING" then
    redis.call("ZREM", k.waits, id)
    return
  end
  tallied(k, at)
  local w = redis.call("HMGET", k.wait .. id, "state", "wait_deadline_at", "on_pending", "on_timeout", "mode", "since", "settled", "size", "first_at")
  if w[1] == "open" then
    local more = impatient(id)
    w = redis.call("HMGET", k.wait .. id, "state", "wait_deadline_at", "on_pending", "on_timeout", "mode", "since", "settled", "size", "first_at")
    if more then
      full = true
      if w[1] == "open" then
        watch(id, w[2])
      end
      return
    end
    local ends = tonumber(w[2])
    if w[1] == "open" and ends and ends < at then
      if due_by(k.deadlines, ends) or due_by(k.limits, ends) or due_by(k.delayed, ends) then -- timers fire there
        full = true
        return
      end
      redis.call("HSET", k.wait .. id, "state", "fired", "reason", "timed_out", "losers", w[3])
      w[1] = "fired"
      emit(k, "terminal", "wait_timed_out", task, at, "timeout_type", "synchronization", "policy_applied", w[4],
        "timeout_duration_ms", string.format("%d", ends - (w[9] or w[6])), "wait_mode", w[5], "settled", w[7], "members", w[8],
        "wait_deadline_at", string.format("%d", ends), "detected_at", string.format("%d", at), "lag_ms", string.format("%d", at - ends))
      did("waits_timed_out")
    end
  end
  if w[1] == "fired" then
    later(k, "ZREM", k.waits, id)
    k.fired[#k.fired + 1] = id
    return
  end
  watch(id, w[2])
end

local function started(id)
  local task = overdue(k, id, at)
  redis.call("ZREM", k.delayed, id)
  if task.role == "timer" and task.status == "COMPLETED" then
    did("fired")
  elseif task.status == "PENDING" and task.available_at then
    redis.call("HDEL", k.task .. id, "available_at")
    task.available_at = nil
    ready(k, task, at)
    did("started")
  end
end

-- abandoned: the lease of a worker is over; what it held is given back in chunks.
local function abandoned(worker)
  local claims = k.claims .. worker
  local ids = redis.call("ZREVRANGE", claims, 0, batch - 1) -- so the oldest ends up in front
  for _, id in ipairs(ids) do
    local function back()
      local task = overdue(k, id, at)
      if task.status == "RUNNING" and task.worker == worker then
        give_back(k, task, at, true)
        did("given_back")
      end
      redis.call("ZREM", claims, id)
      k.ruined = k.ruined or not task.status
    end
    local _, why = guard(k, id, at, back)
    if why then
      redis.call("ZREM", claims, id)
    end
  end
  if #ids == batch then
    full = true
  else
    redis.call("ZREM", k.workers, worker)
    redis.call("DEL", claims, k.worker .. worker)
  end
end

-- close ends a child whose owner has ended. If it had ended before, its retention begins.
local function close(child)
  local f = redis.call("HMGET", k.task .. child, "status", "completed_at", "queue", "retention_ms", "epoch",
    "idempotency_key", "idempotency_scope")
  local task = {id = child, status = f[1], completed_at = f[2], queue = f[3], retention_ms = f[4], epoch = f[5],
    idempotency_key = f[6], idempotency_scope = f[7]}
  if live(task) then
    overdue(k, child, at)
    did("drained")
  elseif task.status and not redis.call("ZSCORE", k.retained, child) then
    retain(k, task, at)
  end
end

-- drained: an ended task's children are doomed; they are ended in chunks. A sweep takes
-- owners until it has had a chunk of children.
k.chunk = batch
local function drained(id)
  full = true
  if k.chunk == 0 then
    return
  end
  local key = k.children .. id
  local ids = redis.call("LRANGE", key, 0, k.chunk - 1)
  for _, child in ipairs(ids) do
    guard(k, child, at, close, child)
  end
  redis.call("LTRIM", key, #ids, -1)
  if #ids < k.chunk then
    redis.call("ZREM", k.draining, id)
    k.drained[id] = nil
  end
  k.chunk = k.chunk - #ids
end

local function removed(id)
  if drains(k, id) then
    later(k, "ZADD", k.retained, id, string.format("%d", at + 1000)) -- its children need it still
    return
  end
  local old = redis.call("HMGET", k.task .. id, "status", "queue")
  if old[1] and not live({status = old[1]}) then
    redis.call("DEL", k.task .. id, k.payload .. id, k.children .. id)
    redis.call("ZREM", k.dead .. old[2], id)
    did("removed")
  end
  redis.call("ZREM", k.retained, id)
end

local function forgotten(key)
  redis.call("HDEL", k.idem, key)
  redis.call("ZREM", k.forget, key)
end

-- refilled: the rate of a queue allows a task again; flush wakes a worker for it.
local function refilled(queue)
  root(k)
  redis.call("ZREM", k.throttled, queue)
  k.woken[queue] = true
end

-- take does a step for each member of a clock that is due, oldest first. What
-- is due at an instant is so after it, strictly, or from it on ("until at").
local function take(clock, bound, step, most)
  local ok, why = pcall(function()
    local due = redis.call("ZRANGEBYSCORE", clock, "-inf", bound, "LIMIT", 0, most or batch)
    for _, member in ipairs(due) do
      local _, broken = (clock == k.waits and shield or guard)(k, member, at, step, member)
      if broken then
        redis.pcall("ZREM", clock, member)
        did("broken")
        errors[#errors + 1] = member .. ": " .. broken
      end
    end
    full = full or #due == (most or batch)
  end)
  if not ok then
    errors[#errors + 1] = clock .. ": " .. (type(why) == "table" and why.err or tostring(why))
  end
end

local past, due = "(" .. string.format("%d", at), string.format("%d", at)
take(k.draining, due, drained)
take(k.deadlines, past, ended(k.deadlines))
take(k.limits, past, ended(k.limits))
take(k.delayed, due, started) -- before the waits: a timer that is due is counted
take(k.waits, past, waited)
take(k.workers, past, abandoned, 1)
take(k.throttled, due, refilled)
take(k.retained, due, removed)
take(k.forget, due, forgotten)
errors[#errors + 1] = flush(k, at)

-- The turn: one reaper is precise, the others look at the fall-back, so that a
-- hundred cost what one does. Correctness does not depend on it.
local state = redis.pcall("HMGET", k.root, "turn", "turn_until")
errors[#errors + 1] = state.err
local till = tonumber(state[2]) or 0
local turn = state[1] == reaper or till <= at or till > at + 2 * fallback -- the clock was set back
local wait = full and 0 or fallback
if turn then
  if not full then
    for clock, strict in pairs({deadlines = 1, limits = 1, waits = 1, workers = 1, delayed = 0, throttled = 0, retained = 0, draining = 0, forget = 0}) do
      local first = redis.pcall("ZRANGE", k[clock], 0, 0, "WITHSCORES")
      if first[2] then
        wait = math.min(wait, math.max(first[2] + strict - at, 0))
      end
    end
  end
  redis.pcall("HSET", k.root, "turn", reaper, "turn_until", at + 2 * fallback, "armed", at + wait)
end

counts.timed_out = k.timed_out
local did_all = {}
for what, n in pairs(counts) do
  did_all[#did_all + 1] = what
  did_all[#did_all + 1] = n
end
return {at, wait, turn and 1 or 0, did_all, unpack(errors)}
