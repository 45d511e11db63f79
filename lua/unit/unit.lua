-- unit decides and commits one unit of work. decide reads, and changes tables; nothing is written before it returns.
-- Waits that fire are decided in the same unit.
--
-- If deciding raises, the data of the task that it was on (tx.on) are at fault. The unit is thrown away and
-- decided again without that task, which is put aside. If tx.on is not set, the error is raised to the caller.
--
-- Returns what decide returns
--
-- @use agent/wake_agents
-- @use queue/queue: write_queues
-- @use store/events
-- @use store/figures
-- @use store/index
-- @use store/later
-- @use store/messages: alarm, publish
-- @use store/record
-- @use store/rights: may_write
-- @use store/tell
-- @use store/try: reason, refused, try
-- @use task/place: aside, put_aside
-- @use wait/journal
-- @use wait/wait: write_waits

-- refuse_wrong_types raises if a key that is about to gain something is of the wrong type.
--
--   gains  keys of sets, as index.prepare returns them
local function refuse_wrong_types(tx, gains)
  -- An intersection with an empty set is empty and cheap; but Redis checks the types of all sets.
  if gains[1] then
    redis.call("ZINTER", string.format("%d", #gains + 1), tx.key.root .. ":none", unpack(gains))
  end
  if tx.later then
    for _, key in ipairs(tx.later.lists) do
      redis.call("LLEN", key)
    end
  end
  redis.call("SCARD", tx.key.queues)
  if tx.queues then
    for queue in pairs(tx.queues.counts) do
      redis.call("HLEN", tx.key.queue .. queue)
    end
    local wakes = tx.queues.wakes
    for queue in pairs(wakes) do
      wakes[queue] = redis.call("LLEN", tx.key.wake .. queue)
    end
  end
  if tx.events then
    redis.call("XLEN", tx.key.events)
  end
end

local function write_root(tx)
  local fields, root, given = {}, tx.root, tx.last
  if given and (given.seq ~= root.seq or given.front ~= root.front) then
    root.seq, root.front = given.seq, given.front
    fields = {"seq", string.format("%d", given.seq), "front", string.format("%d", given.front)}
  end
  if given and given.number ~= root.number then
    root.number = given.number
    fields[#fields + 1], fields[#fields + 2] = "number", string.format("%d", given.number)
  end
  if tx.events then
    events.note(tx, fields)
  end
  local due = alarm.due(tx)
  if due then
    root.armed = tonumber(due)
    fields[#fields + 1], fields[#fields + 2] = "armed", due
  end
  if fields[1] then
    try(tx, "HSET", tx.key.root, unpack(fields))
  end
  return due
end

-- commit writes what a unit of work has decided, in this order: keys that are deleted, what sets gain, waits and
-- journals, the records, what sets lose, queues, figures, events, the root, messages. The transition has happened once
-- the records are written. What is written before them misleads no reader.
--
-- A command that fails (on a key of the wrong type) does not stop the others. tx.reply.failed has its error.
--
--   strict  raise if a key is of the wrong type, before anything is written
local function commit(tx, strict)
  tx.records.written = true
  record.prepare(tx)
  local gains, loses = index.prepare(tx)
  may_write(tx, gains, loses)
  if strict then
    refuse_wrong_types(tx, gains)
  end
  if tx.later then
    later.write_drops(tx)
  end
  index.write_added(tx, gains)
  if tx.waits then
    write_waits(tx)
    journal.write(tx)
  end
  if tx.later then
    later.write_before(tx)
  end
  record.write(tx)
  if tx.later then
    later.write_after(tx)
  end
  index.write_removed(tx, loses)
  if tx.queues then
    write_queues(tx)
  end
  if tx.figures then
    figures.write(tx)
  end
  if tx.events then
    events.write(tx)
  end
  local due = write_root(tx)
  if tx.messages then
    publish.write(tx)
    tell.keep(tx)
  end
  if due then
    publish.alarm(tx, due)
  end
  if tx.aside then
    for id in pairs(tx.aside.unit) do
      tx.aside.before[id] = true
    end
  end
end

-- renew resets what a unit of work has read and decided (store/tx.lua lists the fields).
local function renew(tx)
  tx.records, tx.sets, tx.on = {tasks = {}, changed = {}, texts = {}, some_exist = false, written = false}, {}, false
  tx.queues, tx.last, tx.memo, tx.later, tx.waits = false, false, false, false, false
  tx.figures, tx.events, tx.alarm, tx.messages = false, false, false, false
  if tx.aside then
    tx.aside.unit = {}
  end
end

--   raised  ids of the tasks on which this unit has raised
local function decide_all(tx, raised, decide, ...)
  for _, id in ipairs(raised) do
    put_aside(tx, id, tx.aside.poison[id])
  end
  local answer = decide(tx, ...)
  if tx.waits then
    wake_agents(tx)
  end
  return answer
end

local function unit(tx, decide, ...)
  if tx.records.written then
    renew(tx)
  end
  local cancel, wakes, raised = tx.left.cancel, tx.left.wake, {}
  local ok, answer = pcall(decide_all, tx, raised, decide, ...)
  while not ok do
    local id = tx.on
    if not id or tx.aside and tx.aside.poison[id] or refused(answer) then
      error(answer, 0)
    end
    aside(tx).poison[id], raised[#raised + 1] = reason(answer), id
    renew(tx)
    tx.left.cancel, tx.left.wake = cancel, wakes -- the unit that was thrown away has cancelled and woken nothing
    ok, answer = pcall(decide_all, tx, raised, decide, ...)
  end
  commit(tx, tx.strict)
  return answer
end
