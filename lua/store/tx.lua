-- A call begins here: it reads the time and the root of the partition once, and makes tx.
--
-- @use store/keys
-- @use store/now
-- @use store/versions

-- supported raises an error unless the namespace was opened and this library works with the version of its records.
--
--   version  the field of the root
local function supported(root, version)
  local number = tonumber(version or nil)
  if not version then
    error(root .. " is not a namespace: open it first, with its number of partitions", 0)
  elseif not number then
    error(root .. " is not a namespace: it is being removed", 0)
  elseif number > versions.newest then
    error(string.format("NEWER the records have version %s, and these functions work with versions up to %d: load those of a newer release", version, versions.newest), 0)
  elseif number < versions.oldest then
    error(string.format("OLDER the records have version %s, and these functions work with versions from %d: upgrade them with a release in between",
      version, versions.oldest), 0)
  end
end

-- own returns a table of tx that the caller is about to change. Fields that few calls need start as an empty table
-- that all calls share (store/tx.lua): making twenty tables would be most of the cost of a small call.
local function own(tx, name)
  local mine = tx[name]
  if mine == tx.none then
    mine = {}
    tx[name] = mine
  end
  return mine
end

-- none is an empty table that all calls share. Nothing writes into it (store/tx.lua).
local none = {}

-- begin makes tx: what one call knows, and what it still has to write. tx is the first argument of every function that
-- uses Redis. Each field is listed with the file that owns it.
--
-- For the whole call:
--
--   at, now               the time of the call, read once: ms as a number, and as text
--   key                   the names of all keys of the partition                 store/keys.lua
--   root                  the fields read from the partition's root              store/tx.lua
--   failed                errors of commands that failed, for the reply          store/try.lua
--   poison                tasks whose data made deciding raise, and why          unit/unit.lua
--   told, timed_out, timers_fired  timeouts, wakes and timers, for the reply     store/tell.lua
--   strict                refuse keys of the wrong type before anything is written  unit/unit.lua
--   asked, found_empty, more  queues of a worker's request; those that are empty; whether any has more tasks  queue/queue.lua
--   stopping              the worker must stop                                   task/claim.lua
--   repeated              its seq was used before                                task/claim.lua
--   may_cancel, may_wake  how many more losers and agents this call can end, wake  agent/wake_agents.lua
--
-- For one unit of work, until renew (unit/unit.lua):
--
--   tasks, changed, texts    tasks read; tasks whose state changes; texts of new ones  store/record.lua
--   index, sets              what sorted sets gain and lose                        store/index.lua
--   counts, recounts         counters of queues, and what a running recount must add  queue/queue.lua
--   figures, tallies         tasks that ended, to be counted by kind; what else is counted  store/figures.lua, store/figures.lua
--   wakes                    queues for which to wake an idle worker               queue/queue.lua
--   events, stops, ended     events; messages to workers; messages to watchers     store/events.lua, store/messages.lua
--   lists, drops, before, after   other writes, before and after the records       store/later.lua
--   drained                  when tasks ended that still have live children        task/identity.lua
--   waits, fired             waits of agents, and agents whose wait has fired      wait/wait.lua, agent/count.lua
--   noted, overdue           members that ended, and children that may be out of time, by owner  wait/wait.lua, agent/count.lua
--   journals                 changes of journals                                   wait/journal.lua
--   rooms                    how many tasks queues can give                        queue/queue.lua
--   drafts                   the texts of new tasks, by shape and owner            task/plan.lua
--   keyed, large             tasks of idempotency keys; large payloads             task/identity.lua, task/create.lua
--   aside, put_aside         tasks put aside in this unit; in earlier units        task/place.lua
--   timeouts, woken, timers  tasks that timed out, agents woken, timers that fired  store/tell.lua
--   earliest                 the next instant at which something is due            store/messages.lua
--   seq, front               the last places given in line; seq numbers ids, too  queue/queue.lua, named/task.lua
--   number                   the least number of a later task                    task/identity.lua
--   recount                  running tasks must be counted again; "go on": continue  queue/queue.lua
--   on                       the task that is being decided                        unit/unit.lua
--   stale                    the unit has been written, or is being written        unit/unit.lua
local function begin(root)
  local at = now(root)
  return {
    at = at, now = string.format("%d", at), key = keys.of(root), root = false, none = none, failed = none, poison = none,
    told = none, timed_out = 0, timers_fired = 0, strict = false, asked = false, found_empty = false, more = false, stopping = false, repeated = false, may_cancel = 100, may_wake = 100,
    tasks = {}, changed = {}, texts = {}, index = {}, sets = {}, counts = {}, recounts = none, wakes = none, events = none, stops = none, figures = none, tallies = none,
    ended = none, lists = none, drops = none, before = none, after = none, drained = none, waits = none, fired = none, noted = none, overdue = none,
    journals = none, rooms = none, keyed = none, large = none, aside = none, timeouts = none, woken = none, timers = 0, drafts = none, put_aside = none,
    earliest = false, seq = false, front = false, number = false, recount = false, on = false, stale = false,
  }
end

-- begin_read begins a call that reads nothing of the root but the version of the records.
local function begin_read(root)
  local tx = begin(root)
  supported(root, redis.call("HGET", root, "version"))
  keys.keep(tx.key)
  return tx
end

-- read_root reads what a call needs of the partition's root: the level of events, the last places given
-- in line, the number of events, whether any queue is controlled, when the reaper sweeps next, whether ends
-- are counted by kind, the progress of a recount of running tasks (queue/queue.lua), the least
-- number of a new task (task/identity.lua), and the defaults of kinds. It raises if the namespace was never opened, or has a version that this library does not support.
--
--   kinds  the kinds whose defaults the call will need, or nil
local function read_root(tx, kinds)
  local fields = {"version", "events", "seq", "front", "controlled", "armed", "event_count", "event_bytes", "figures", "recounted", "number"}
  for i, kind in ipairs(kinds or {}) do
    fields[11 + i] = #kind <= 128 and "kind:" .. kind or "kind:" -- a longer one is refused
  end
  local values = redis.call("HMGET", tx.key.root, unpack(fields))
  supported(tx.key.root, values[1])
  keys.keep(tx.key)
  tx.root = {level = values[2] or "terminal", seq = tonumber(values[3] or 0), front = tonumber(values[4] or 0),
    controlled = values[5], armed = tonumber(values[6] or nil), event_count = tonumber(values[7] or nil) or 0,
    event_bytes = tonumber(values[8] or nil) or 0, figures = values[9] ~= "off", recounted = values[10],
    number = tonumber(values[11] or nil) or 0, defaults = {}}
  for i, kind in ipairs(kinds or {}) do
    tx.root.defaults[kind] = values[11 + i] or ""
  end
  return tx
end
