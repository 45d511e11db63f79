-- A call begins here: it reads the time and the root of the partition once, and makes tx.
--
-- @use store/keys
-- @use store/now
-- @use store/versions

-- supported raises an error unless the namespace was opened and this library works with the version of its records.
--
--   version  the field of the root: a number, and behind a plus what else a program must know to keep the records whole
local function supported(root, version)
  local number = tonumber(version)
  if not version then
    error(root .. " is not a namespace: open it first, with its number of partitions", 0)
  elseif not number then
    local more = string.match(version, "^%d+%+(.+)$")
    if more then
      error("NEWER the records have " .. more .. ", which these functions do not know: load those of a newer release", 0)
    end
    error(root .. " is not a namespace: it is being removed", 0)
  elseif number > versions.newest then
    error(string.format("NEWER the records have version %s, and these functions work with versions up to %d: load those of a newer release", version, versions.newest), 0)
  elseif number < versions.oldest then
    error(string.format("OLDER the records have version %s, and these functions work with versions from %d: upgrade them with a release in between",
      version, versions.oldest), 0)
  end
end

-- begin makes tx: what one call knows, and what it still has to write. tx is the first argument of every function that
-- uses Redis. Each field is listed with the file that owns it.
--
-- For the whole call:
--
--   at, now   the time of the call, read once: ms as a number, and as text
--   key       the names of all keys of the partition                                      store/keys.lua
--   root      the fields read from the partition's root                                   store/tx.lua
--   reply     failed: errors of commands that failed; what the reply tells of others         store/try.lua, store/tell.lua
--   left      cancel, wake: how many more losers and agents this call can end and wake    agent/count.lua, agent/wake_agents.lua
--   aside     tasks that are put aside, and why                                           task/place.lua
--   strict    refuse keys of the wrong type before anything is written                    unit/unit.lua
--
-- For one unit of work, until renew (unit/unit.lua). All but the first three are false until their owner has something:
--
--   on        the task that is being decided                                              unit/unit.lua
--   records   tasks read; tasks whose state changes; texts to write                       store/record.lua
--   sets      what sorted sets gain and lose                                              store/index.lua
--   queues    counters of queues, whom to wake, and what came of a request for tasks      queue/queue.lua
--   last      the last places given in line, and the least number of a later task         store/tx.lua
--   memo      what need not be read or made again                                         store/tx.lua
--   later     other writes, before and after the records                                  store/later.lua
--   waits     waits and journals of agents, and members that ended                        wait/wait.lua
--   figures   ends, and what else is counted by kind                                      store/figures.lua
--   events    lines of events                                                             store/events.lua
--   alarm     the earliest instant that falls due                                         store/messages.lua
--   messages  whom to notify, and what the caller is told                                 store/messages.lua, store/tell.lua
local function begin(root)
  local at = now(root)
  -- All fields are named here, since a table that grows is hashed again.
  return {at = at, now = string.format("%d", at), key = keys.of(root), root = false,
    reply = {failed = {}, told = false, timed_out = 0, timers_fired = 0}, left = {cancel = 100, wake = 100}, aside = false, strict = false,
    on = false, records = {tasks = {}, changed = {}, texts = {}, some_exist = false, written = false}, sets = {},
    queues = false, last = false, memo = false, later = false, waits = false, figures = false, events = false, alarm = false, messages = false}
end

-- memo returns what a unit of work remembers about one thing, which is a name or a table. Its owner reads and fills it.
local function memo(tx, about)
  local all = tx.memo
  if not all then
    all = {}
    tx.memo = all
  end
  local known = all[about]
  if not known then
    known = {}
    all[about] = known
  end
  return known
end

-- last returns the last places given in line (seq at its end, front before it) and the least number of a later task. They begin as
-- those of the root.
local function last(tx)
  local given = tx.last
  if not given then
    given = {seq = tx.root.seq, front = tx.root.front, number = tx.root.number}
    tx.last = given
  end
  return given
end

-- begin_read begins a call that reads nothing of the root but the version of the records.
local function begin_read(root)
  local tx = begin(root)
  supported(root, redis.call("HGET", root, "version"))
  keys.keep(tx.key)
  return tx
end

-- of_root are the fields of a partition's root that a call reads, in this order.
local of_root = {"version", "events", "seq", "front", "controlled", "armed", "event_count", "event_bytes", "figures", "recounted", "number",
  "default_timeout_ms"}

-- with_kinds returns these fields, and those with the defaults of kinds after them.
local function with_kinds(kinds)
  local fields = {unpack(of_root)}
  for i, kind in ipairs(kinds) do
    fields[#of_root + i] = #kind <= 128 and "kind:" .. kind or "kind:" -- a longer one is refused
  end
  return fields
end

-- read_root reads what a call needs of the partition's root: the level of events, the last places given
-- in line, the number of events, whether any queue is controlled, when the reaper sweeps next, whether ends
-- are counted by kind, the progress of a recount of running tasks (queue/queue.lua), the least
-- number of a new task (task/identity.lua), the default timeout of root tasks (task/plan.lua), and the defaults of kinds. It raises if the
-- namespace was never opened, or has a version that this library does not support.
--
--   kinds  the kinds whose defaults the call will need, or nil
local function read_root(tx, kinds)
  local fields, defaults = kinds and with_kinds(kinds) or of_root, {}
  local values = redis.call("HMGET", tx.key.root, unpack(fields))
  supported(tx.key.root, values[1])
  keys.keep(tx.key)
  tx.root = {level = values[2] or "terminal", seq = tonumber(values[3] or 0), front = tonumber(values[4] or 0),
    controlled = values[5], armed = tonumber(values[6]), event_count = tonumber(values[7]) or 0,
    event_bytes = tonumber(values[8]) or 0, figures = values[9] ~= "off", recounted = values[10],
    number = tonumber(values[11]) or 0, default_timeout = values[12], defaults = defaults}
  for i = 1, kinds and #kinds or 0 do
    defaults[kinds[i]] = values[#of_root + i] or ""
  end
  return tx
end
