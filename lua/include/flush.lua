-- flush wakes the agents whose wait has fired, and writes what was put off: sorted sets,
-- counters, the line's sequence, wake tokens and the alarm. Every script that changes something ends with it,
-- and one that must see its own writes calls it in between.
--
-- What cannot be written (a key of the wrong type) hinders nothing else: the tasks
-- are what they are by now. It is returned, as a text, for the caller to tell.
--
-- @include tallied
-- @include conclude
-- @include shield
-- @include write
-- @include recount
-- @include wake
local function flush(k, at)
  tallied(k, at)
  for _, id in ipairs(k.fired) do
    shield(k, id, at, conclude, k, id, at)
    tallied(k, at)
  end
  k.fired = {}
  for _, run in ipairs(k.runs) do
    for i = 1, run.n, 4000 do
      write(k, run.command, run.key, unpack(run, i, math.min(i + 3999, run.n)))
    end
  end
  k.runs, k.run = {}, {}

  if k.lined then
    write(k, "HSET", k.root, "seq", k.seq, "front", k.front)
    k.lined = nil
  end

  for queue, counts in pairs(k.counts) do
    for field, n in pairs(counts) do
      if n ~= 0 then
        write(k, "HINCRBY", k.queue .. queue, field, n)
      end
    end
    if counts.enqueued and not k.listed[queue] then
      write(k, "SADD", k.queues, queue)
    end
    if k.controlled and (counts.running or 0) < 0 and write(k, "ZCARD", k.ready .. queue) > 0 then
      k.woken[queue] = true -- it may have been full
    end
  end
  k.counts, k.rooms = {}, {}
  if k.ruined then
    k.ruined = nil
    recount(k)
  end

  -- The oldest beyond the cap go early, but not within 60 s of their end (retain.lua).
  for queue in pairs(k.buried or {}) do
    local over = write(k, "ZCARD", k.dead .. queue) - 100000
    local oldest = over > 0 and write(k, "ZPOPMIN", k.dead .. queue, math.min(over, 500)) or {}
    for i = 1, #oldest, 2 do
      write(k, "ZADD", k.retained, math.max(oldest[i + 1] + 60000, at), oldest[i])
    end
  end
  k.buried = nil

  for queue in pairs(k.woken) do
    wake(k, queue, at)
  end
  k.woken = {}

  -- The reaper looks every 500 ms anyway; only what is sooner is worth a call.
  if k.earliest and k.earliest < at + 500 then
    local armed = tonumber(write(k, "HGET", k.root, "armed"))
    if not armed or k.earliest < armed then
      write(k, "HSET", k.root, "armed", k.earliest)
      redis.call("PUBLISH", k.alarm, k.earliest)
    end
  end
  k.earliest = nil
  local failed = k.failed
  k.failed = nil
  return failed
end
