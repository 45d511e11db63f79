-- Messages that save time: to reapers, workers and watchers.

-- messages returns the messages of a unit of work, to be filled:
--
--   stops, ended                whom to notify
--   timeouts, woken, timers     what the caller is told                 store/tell.lua
local function messages(tx)
  local mine = tx.messages
  if not mine then
    mine = {stops = {}, ended = {}, timeouts = {}, woken = {}, timers = 0}
    tx.messages = mine
  end
  return mine
end

-- alarm notifies the reaper of an instant at which something falls due, if the reaper would not sweep by then.
local alarm = {}

function alarm.note(tx, instant)
  if not tx.alarm or instant < tx.alarm then
    tx.alarm = instant
  end
end

-- due returns the instant that the reaper must be notified of, or nil if it sweeps early enough anyway.
function alarm.due(tx)
  local first, armed = tx.alarm, tx.root.armed
  if first and not (armed and armed <= first) then
    return string.format("%d", first)
  end
end

-- publish sends the messages of a unit of work. A message only saves time: its receivers also poll, so a message
-- that cannot be sent stops nothing.
local publish = {}

-- stop notifies a worker that an attempt must stop.
function publish.stop(tx, task, reason)
  local stops = messages(tx).stops
  stops[#stops + 1] = {tx.key.stop .. task.worker, task.id .. " " .. task.epoch .. " " .. reason}
end

-- ended notifies the watchers of a task that it has ended.
function publish.ended(tx, task)
  local ended = messages(tx).ended
  ended[#ended + 1] = task.id
end

function publish.write(tx)
  for _, stop in ipairs(tx.messages.stops) do
    redis.pcall("PUBLISH", stop[1], stop[2])
  end
  for _, id in ipairs(tx.messages.ended) do
    redis.pcall("PUBLISH", tx.key.ended, id)
  end
end

-- alarm notifies the reaper of an instant (alarm.due).
function publish.alarm(tx, instant)
  redis.pcall("PUBLISH", tx.key.alarm, instant)
end
