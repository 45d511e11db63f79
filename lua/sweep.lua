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
-- @include record
-- @include live
-- @include nearest
-- @include emit
-- @include root
-- @include drains
-- @include overdue
-- @include give_back
-- @include later
-- @include ready
-- @include retain
-- @include guard
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

-- drained: an ended task's children are doomed; they are ended in chunks.
local function drained(id)
  local key = k.children .. id
  local ids = redis.call("LRANGE", key, 0, batch - 1)
  for _, child in ipairs(ids) do
    local function close()
      local task = record(k, child)
      if live(task) then
        overdue(k, child, at)
        did("drained")
      elseif task.status and not redis.call("ZSCORE", k.retained, child) then
        retain(k, task, at)
      end
    end
    guard(k, child, at, close)
  end
  redis.call("LTRIM", key, #ids, -1)
  if #ids == batch then
    full = true
  else
    redis.call("ZREM", k.draining, id)
  end
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
      local _, broken = guard(k, member, at, step, member)
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
take(k.draining, due, drained, 1)
take(k.deadlines, past, ended(k.deadlines))
take(k.limits, past, ended(k.limits))
take(k.workers, past, abandoned, 1)
take(k.delayed, due, started)
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
    for clock, strict in pairs({deadlines = 1, limits = 1, workers = 1, delayed = 0, throttled = 0, retained = 0, draining = 0, forget = 0}) do
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
