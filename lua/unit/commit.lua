-- commit writes what a unit of work has decided, in this order: keys that are deleted, what sets gain, waits and
-- journals, the records, what sets lose, counters, figures, events, wake tokens, the root, messages. The transition
-- has happened once the records are written. What is written before them misleads no reader.
--
-- A command that fails (on a key of the wrong type) does not stop the others. tx.failed has its error.
--
--   strict  raise if a key is of the wrong type, before anything is written
--
-- @use store/may_write
-- @use store/index
-- @use store/figures
-- @use store/later
-- @use store/own
-- @use store/record
-- @use store/alarm
-- @use store/events
-- @use store/publish
-- @use store/tell
-- @use store/try
-- @use store/refuse_wrong_types
-- @use queue/count
-- @use queue/wake
-- @use queue/recount_running
-- @use wait/write_waits
-- @use wait/journal

local function write_root(tx)
  local fields = {}
  if tx.seq or tx.front then
    tx.root.seq, tx.root.front = tx.seq or tx.root.seq, tx.front or tx.root.front
    fields = {"seq", string.format("%d", tx.root.seq), "front", string.format("%d", tx.root.front)}
  end
  if tx.number then
    tx.root.number = tx.number
    fields[#fields + 1], fields[#fields + 2] = "number", string.format("%d", tx.number)
  end
  events.note(tx, fields)
  local ring = alarm.ring(tx)
  if ring then
    tx.root.armed = tonumber(ring)
    fields[#fields + 1], fields[#fields + 2] = "armed", ring
  end
  if fields[1] then
    try(tx, "HSET", tx.key.root, unpack(fields))
  end
  return ring
end

local function commit(tx, strict)
  tx.stale = true
  record.prepare(tx)
  index.prepare(tx)
  may_write(tx)
  if strict then
    refuse_wrong_types(tx)
  end
  later.write_drops(tx)
  index.write_added(tx)
  write_waits(tx)
  journal.write(tx)
  later.write_before(tx)
  record.write(tx)
  later.write_after(tx)
  index.write_removed(tx)
  count.write(tx)
  if tx.figures ~= tx.none or tx.tallies ~= tx.none then
    figures.write(tx)
  end
  if tx.recount then
    recount_running(tx)
  end
  events.write(tx)
  wake.write(tx)
  local ring = write_root(tx)
  publish.write(tx, ring)
  tell.keep(tx)
  for id in pairs(tx.aside) do
    own(tx, "put_aside")[id] = true
  end
end
