-- Messages that save time: to reapers, workers and watchers.
--
-- @use store/tx: own

-- alarm notifies the reaper of an instant at which something falls due, if the reaper would not sweep by then.
local alarm = {}

function alarm.note(tx, instant)
  if not tx.earliest or instant < tx.earliest then
    tx.earliest = instant
  end
end

-- ring returns the instant that the reaper must be notified of, or nil if it sweeps early enough anyway.
function alarm.ring(tx)
  local first, armed = tx.earliest, tx.root.armed
  if first and not (armed and armed <= first) then
    return string.format("%d", first)
  end
end

-- publish sends the messages of a unit of work. A message only saves time: its receivers also poll, so a message
-- that cannot be sent stops nothing.
local publish = {}

-- stop notifies a worker that an attempt must stop.
function publish.stop(tx, task, reason)
  local stops = own(tx, "stops")
  stops[#stops + 1] = {tx.key.stop .. task.worker, task.id .. " " .. task.epoch .. " " .. reason}
end

-- ended notifies the watchers of a task that it has ended.
function publish.ended(tx, task)
  local ended = own(tx, "ended")
  ended[#ended + 1] = task.id
end

function publish.write(tx, ring)
  for _, stop in ipairs(tx.stops) do
    redis.pcall("PUBLISH", stop[1], stop[2])
  end
  for _, id in ipairs(tx.ended) do
    redis.pcall("PUBLISH", tx.key.ended, id)
  end
  if ring then
    redis.pcall("PUBLISH", tx.key.alarm, ring)
  end
end
