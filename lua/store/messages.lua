-- Messages that save time: to reapers, workers and watchers.

-- list returns the messages of one kind: stops, ended, timeouts or woken.
local function list(tx, name)
  local mine = tx.messages
  if not mine then
    mine = {earliest = false, stops = false, ended = false, timeouts = false, woken = false, timers = false}
    tx.messages = mine
  end
  local all = mine[name]
  if not all then
    all = {}
    mine[name] = all
  end
  return all
end

-- alarm notifies the reaper of an instant at which something falls due, if the reaper would not sweep by then.
local alarm = {}

function alarm.note(tx, instant)
  local mine = tx.messages
  if not mine then
    tx.messages = {earliest = instant, stops = false, ended = false, timeouts = false, woken = false, timers = false}
  elseif not mine.earliest or instant < mine.earliest then
    mine.earliest = instant
  end
end

-- ring returns the instant that the reaper must be notified of, or nil if it sweeps early enough anyway.
function alarm.ring(tx)
  local first, armed = tx.messages and tx.messages.earliest, tx.root.armed
  if first and not (armed and armed <= first) then
    return string.format("%d", first)
  end
end

-- publish sends the messages of a unit of work. A message only saves time: its receivers also poll, so a message
-- that cannot be sent stops nothing.
local publish = {}

-- stop notifies a worker that an attempt must stop.
function publish.stop(tx, task, reason)
  local stops = list(tx, "stops")
  stops[#stops + 1] = {tx.key.stop .. task.worker, task.id .. " " .. task.epoch .. " " .. reason}
end

-- ended notifies the watchers of a task that it has ended.
function publish.ended(tx, task)
  local ended = list(tx, "ended")
  ended[#ended + 1] = task.id
end

function publish.write(tx, ring)
  local mine = tx.messages
  for _, stop in ipairs(mine and mine.stops or {}) do
    redis.pcall("PUBLISH", stop[1], stop[2])
  end
  for _, id in ipairs(mine and mine.ended or {}) do
    redis.pcall("PUBLISH", tx.key.ended, id)
  end
  if ring then
    redis.pcall("PUBLISH", tx.key.alarm, ring)
  end
end
