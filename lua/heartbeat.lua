-- heartbeat: a worker says that it lives and what it holds.
--
-- KEYS[1]  root of the partition
-- ARGV[1]  worker
-- ARGV[2]  ms of lease from now; 0 is goodbye: what it holds is given back
-- ARGV[3]  known: all its fetches up to this seq were answered or given up, so a
--          claim of theirs that it does not name was never received, or dropped
-- ARGV[4…] id, epoch, progress, …: what it is working on, and what its handler says of
--          how far it is, of which 1024 bytes are kept; empty: nothing new
--
-- Returns  {now, {id, epoch, reason}, …}: which attempts must stop. reason is
--          gone, lost, released, timeout, cancelled, or how else the task ended;
--          cancelling: it is to stop, and keeps its claim for a while
-- Ends     FAILED, what is late among them
-- Flags    allow-oom        a full Redis must still drain
--
-- @include keys
-- @include now
-- @include overdue
-- @include live
-- @include stamp
-- @include give_back
-- @include alarm
-- @include guard
-- @include flush
-- @include complete

local k, at = keys(KEYS[1]), now()
local worker, lease, known = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local claims = k.claims .. worker
if #ARGV % 3 ~= 0 then
  error("heartbeat: " .. ARGV[#ARGV] .. " is not the last of id, epoch and progress; give all three", 0)
end

-- keep writes down how far an attempt is. A repeat changes nothing, so that progress_at
-- is when this was first heard of this attempt.
local function keep(task, progress)
  progress = string.sub(progress, 1, 1024)
  if task.progress ~= progress or (tonumber(task.progress_at) or 0) < tonumber(task.started_at) then
    redis.call("HSET", k.task .. task.id, "progress", progress, "progress_at", stamp(k, at))
  end
end

-- verdict says why an attempt must stop, nil if it may go on: only then is its
-- progress the task's.
local function verdict(id, epoch, progress)
  local task = overdue(k, id, at)
  if not task.status then
    return "gone"
  elseif not live(task) then
    return task.timed_out and "timeout" or string.lower(task.status)
  elseif task.epoch ~= epoch or task.status == "RUNNING" and task.worker ~= worker then
    return "lost"
  elseif task.status == "PENDING" and task.lost_by ~= worker then
    return "released"
  elseif task.cancel_at then
    return "cancelling"
  elseif progress ~= "" and task.status == "RUNNING" then
    keep(task, progress)
  end
end

-- A key of the wrong type is met before the first write, not after it.
redis.call("ZCARD", k.workers)
redis.call("ZCARD", claims)
local stops, held = {at}, {}
for i = 4, #ARGV, 3 do
  local id, epoch = ARGV[i], ARGV[i + 1]
  held[id] = true
  local reason, why = guard(k, id, at, verdict, id, epoch, ARGV[i + 2])
  if why then
    redis.call("ZREM", claims, id)
  end
  if reason or why then
    stops[#stops + 1] = {id, epoch, reason or "gone"}
  end
end

-- drop gives a claim back. The newest goes first, so the oldest ends up in front.
local function drop(id, blame)
  local task = overdue(k, id, at)
  if task.status == "RUNNING" and task.worker == worker then
    give_back(k, task, at, blame)
  else
    redis.call("ZREM", claims, id)
    k.ruined = k.ruined or not task.status
  end
  return true
end

if lease > 0 then
  redis.call("ZADD", k.workers, at + lease, worker)
  alarm(k, at + lease)
  for _, id in ipairs(redis.call("ZREVRANGEBYSCORE", claims, known, "-inf")) do
    if not held[id] then
      guard(k, id, at, drop, id, false)
    end
  end
  complete(flush(k, at))
else
  for _, id in ipairs(redis.call("ZREVRANGE", claims, 0, -1)) do
    guard(k, id, at, drop, id, false)
  end
  local failed = flush(k, at)
  redis.call("ZREM", k.workers, worker)
  redis.call("DEL", claims, k.worker .. worker)
  complete(failed)
end
return stops
