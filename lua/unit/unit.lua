-- unit decides and commits one unit of work. decide reads, and changes tables; nothing is written before it returns.
-- Waits that fire are decided in the same unit.
--
-- If deciding raises, the data of the task that it was on (tx.on) are at fault. The unit is thrown away and
-- decided again without that task, which is put aside. If tx.on is not set, the error is raised to the caller.
--
-- Returns what decide returns
--
-- @use agent/wake_agents
-- @use queue/queue: count, recount_running, wake
-- @use store/events
-- @use store/figures
-- @use store/index
-- @use store/later
-- @use store/messages: alarm, publish
-- @use store/record
-- @use store/rights: may_write
-- @use store/tell
-- @use store/try: reason, refused, try
-- @use store/tx: own
-- @use task/place: put_aside
-- @use wait/journal
-- @use wait/wait: write_waits

-- refuse_wrong_types raises if a key that is about to gain something is of the wrong type.
local function refuse_wrong_types(tx)
  -- An intersection with an empty set is empty and cheap; but Redis checks the types of all sets.
  local sets = index.gains(tx)
  if sets[1] then
    redis.call("ZINTER", string.format("%d", #sets + 1), tx.key.root .. ":none", unpack(sets))
  end
  for _, key in ipairs(tx.lists) do
    redis.call("LLEN", key)
  end
  for queue in pairs(tx.counts) do
    redis.call("HLEN", tx.key.queue .. queue)
  end
  redis.call("SCARD", tx.key.queues)
  for queue in pairs(tx.wakes) do
    own(tx, "wakes")[queue] = redis.call("LLEN", tx.key.wake .. queue)
  end
  if #tx.events > 0 then
    redis.call("XLEN", tx.key.events)
  end
end

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

-- commit writes what a unit of work has decided, in this order: keys that are deleted, what sets gain, waits and
-- journals, the records, what sets lose, counters, figures, events, wake tokens, the root, messages. The transition
-- has happened once the records are written. What is written before them misleads no reader.
--
-- A command that fails (on a key of the wrong type) does not stop the others. tx.failed has its error.
--
--   strict  raise if a key is of the wrong type, before anything is written
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

-- renew resets what a unit of work has read and decided (store/tx.lua lists the fields).
local function renew(tx)
  local none = tx.none
  tx.tasks, tx.changed, tx.texts, tx.index, tx.sets, tx.counts = {}, {}, {}, {}, {}, {}
  tx.wakes, tx.events, tx.stops, tx.ended, tx.lists, tx.drops = none, none, none, none, none, none
  tx.before, tx.after, tx.drained, tx.waits, tx.fired, tx.journals = none, none, none, none, none, none
  tx.rooms, tx.keyed, tx.large, tx.aside, tx.timeouts, tx.woken = none, none, none, none, none, none
  tx.drafts, tx.noted, tx.overdue = none, none, none
  tx.figures, tx.tallies = none, none
  tx.recounts = none
  tx.timers, tx.earliest, tx.seq, tx.front, tx.number, tx.recount, tx.on = 0, false, false, false, false, false, false
  tx.stale = false
end

--   raised  ids of the tasks on which this unit has raised
local function decide_all(tx, raised, decide, ...)
  for _, id in ipairs(raised) do
    put_aside(tx, id, tx.poison[id])
  end
  local answer = decide(tx, ...)
  wake_agents(tx)
  return answer
end

local function unit(tx, decide, ...)
  if tx.stale then
    renew(tx)
  end
  local may_cancel, may_wake, raised = tx.may_cancel, tx.may_wake, {}
  local ok, answer = pcall(decide_all, tx, raised, decide, ...)
  while not ok do
    local id = tx.on
    if not id or tx.poison[id] or refused(answer) then
      error(answer, 0)
    end
    own(tx, "poison")[id], raised[#raised + 1] = reason(answer), id
    renew(tx)
    tx.may_cancel, tx.may_wake = may_cancel, may_wake -- the unit that was thrown away has cancelled and woken nothing
    ok, answer = pcall(decide_all, tx, raised, decide, ...)
  end
  commit(tx, tx.strict)
  return answer
end
