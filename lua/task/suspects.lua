-- Suspects: tasks whose last worker died. One of the tasks that a dead worker held may have killed it, and nobody knows which.
-- So that such a task does not take others with it again and again, suspects have sets of their own beside the line (store/state.lua:
-- set_of), and are handed out with care:
--
--   !few    after one lost lease: a worker of n slots holds √n of them. Of n suspects with one that kills, that makes the fewest
--           rounds here and runs alone afterwards together
--   !alone  after two or more in a row: a worker takes one when it holds nothing else, and takes nothing else until that has
--           ended. It dies alone, so only the task itself can be the cause
--
-- lease_losses counts the lost leases in a row. It is reset when the task gets something done: an attempt ends, or an agent adds to
-- its journal.
--
-- A worker that has nothing to do takes a suspect at once. If all are busy, one worker of the partition at a time isolates
-- itself: it takes no tasks until its last has ended, then one suspect, and then it rests for as long as that took, so that at
-- most half of its time is lost to tasks in line. The key isolation has that worker, since when, free_at, and wanted_at: since
-- when suspects have waited for an isolation.
--
-- What a worker holds is stored in its record: suspects, the ids of few that it took; alone, the id of the one that it took
-- alone, or - while it isolates itself. An id has an instant behind it: from then on the task has run for long enough, and the worker
-- takes others beside it. So a suspect that hangs holds up a worker for a minute, or ten.
--
-- @use queue/queue: free_slots
-- @use store/later
-- @use store/try: attempt
-- @use store/tx: memo
-- @use task/place: holding

-- most_drain is for how many ms a worker takes no tasks before it holds none, as a rule; and after how many ms a suspect has run for
-- long enough, so that it counts as no suspect for others. Only the next loss could end it if it lost three leases, so it runs alone
-- for longer then.
local most_drain, longest = 60000, 600000

local suspects = {}

-- split takes the sets of suspects out of the sets of held tasks that a worker fits, by queue. It returns those of few and those of
-- tasks that run alone.
function suspects.split(of)
  local few, alone = {}, {}
  for queue, sets in pairs(of) do
    local others = {}
    for _, set in ipairs(sets) do
      local how = string.match(set, "!(%a+)$")
      local into = others
      if how then
        local by_queue = how == "few" and few or alone
        by_queue[queue] = by_queue[queue] or {}
        into = by_queue[queue]
      end
      into[#into + 1] = set
    end
    of[queue] = others
  end
  return few, alone
end

-- held_of returns those of a text of ids that a worker holds, if it has not held them for long. Each id has an instant behind it: when
-- they have run for long enough.
local function held_of(tx, worker, text)
  local held = {}
  for id, instant in string.gmatch(text or "", "(%S+) (%d+)") do
    if tonumber(instant) > tx.at and type(attempt("ZSCORE", tx.key.claims .. worker, id)) == "string" then
      held[#held + 1] = id .. " " .. instant
    end
  end
  return held
end

-- entry returns the id of a suspect that a worker takes, and when it has run for long enough.
function suspects.entry(tx, task)
  local long = tonumber(task.lease_losses) > 2 and longest or most_drain
  return task.id .. " " .. string.format("%d", tx.at + long)
end

-- room returns how many suspects that need not be alone a worker can take, and the ids of those that it holds.
--
--   known  the field suspects of its record
function suspects.room(tx, ask, known)
  local held = held_of(tx, ask.worker, known)
  local slots = ask.n + suspects.company(tx, ask)
  return math.ceil(math.sqrt(slots)) - #held, held
end

-- company returns how many tasks a worker holds, here and, as it says, in other partitions.
function suspects.company(tx, ask)
  return redis.call("ZCARD", tx.key.claims .. ask.worker) + ask.elsewhere
end

-- some reports whether a queue has tasks in one of its sets.
--
--   sets  by queue
function suspects.some(tx, sets, queue)
  for _, set in ipairs(sets[queue] or {}) do
    if holding(tx, set).n > 0 then
      return true
    end
  end
  return false
end

-- open reports whether one of these sets, by queue, has a task that its queue can give.
function suspects.open(tx, ask, sets)
  for _, queue in ipairs(ask.queues) do
    if sets[queue] and free_slots(tx, queue).n > 0 and suspects.some(tx, sets, queue) then
      return true
    end
  end
  return false
end

-- isolation returns the record of the partition's isolation, as this call has left it: worker ("" if none), since, free_at and
-- wanted_at. It returns nil if it cannot be read.
local function isolation(tx)
  local known = memo(tx, "isolation")
  if known.now == nil then
    local f = attempt("HMGET", tx.key.isolation, "worker", "since", "free_at", "wanted_at")
    known.now = not f.err and {worker = f[1] or "", since = tonumber(f[2] or nil) or tx.at, free_at = tonumber(f[3] or nil) or 0,
      wanted_at = tonumber(f[4] or nil) or 0}
  end
  return known.now or nil
end

local function write(tx, now)
  later.before(tx, "HSET", tx.key.isolation, "worker", now.worker, "since", string.format("%d", now.since), "free_at",
    string.format("%d", now.free_at), "wanted_at", string.format("%d", now.wanted_at))
end

-- rest ends an isolation: no worker isolates itself for so many ms.
local function rest(tx, now, ms)
  now.worker, now.free_at = "", tx.at + ms
  write(tx, now)
end

-- patience returns for how many ms a worker may take no tasks before it holds none: a minute, or a tenth of the time for which suspects
-- have waited for it.
local function patience(tx, now)
  return math.max(most_drain, math.floor((tx.at - now.wanted_at) / 10))
end

-- lives reports whether a worker has a lease.
local function lives(tx, worker)
  local lease = attempt("ZSCORE", tx.key.workers, worker)
  return type(lease) == "string" and tonumber(lease) >= tx.at
end

-- turn reports whether a worker can isolate itself now, or does so already.
--
--   drains  it holds other tasks, and would take none until they have ended. If its patience ends before, it rests ten times as long.
--           So a task that runs for hours costs little
function suspects.turn(tx, worker, drains)
  local now = isolation(tx)
  if not now then
    return false
  elseif now.worker == worker then
    local over = drains and tx.at - now.since > patience(tx, now)
    if over then
      later.before(tx, "HDEL", tx.key.worker .. worker, "alone")
      rest(tx, now, 10 * patience(tx, now))
    end
    return not over
  elseif now.worker ~= "" then -- unless it has died, or asks for nothing any more
    return not lives(tx, now.worker) or tx.at - now.since > patience(tx, now) + longest
  end
  return now.free_at <= tx.at
end

-- isolate notes that a worker takes a suspect alone, or takes nothing until it can.
--
--   id    the suspect, or -
--   mine  the tasks in line wait for it, so no other worker can do so meanwhile
function suspects.isolate(tx, ask, id, mine)
  later.before(tx, "HSET", tx.key.worker .. ask.worker, "alone", id)
  local now = mine and isolation(tx)
  if now and now.worker ~= ask.worker then
    local earlier = now.wanted_at > 0 and tx.at - now.free_at < math.max(most_drain, now.free_at - now.wanted_at)
    now.worker, now.since, now.wanted_at = ask.worker, tx.at, earlier and now.wanted_at or tx.at
    write(tx, now)
  end
end

-- is_alone reports whether a worker holds a suspect alone. If it did and no longer does, or for long enough, its isolation is over.
--
--   alone  the field of its record
function suspects.is_alone(tx, worker, alone)
  if not alone or alone == "-" then
    return false
  elseif held_of(tx, worker, alone)[1] then
    return true
  end
  later.before(tx, "HDEL", tx.key.worker .. worker, "alone")
  local now = isolation(tx)
  if now and now.worker == worker then
    now.wanted_at = 0
    rest(tx, now, math.max(tx.at - now.since, 0))
  end
  return false
end

-- give_up ends an isolation for which no suspect is left.
function suspects.give_up(tx, worker)
  later.before(tx, "HDEL", tx.key.worker .. worker, "alone")
  local now = isolation(tx)
  if now and now.worker == worker then
    now.worker, now.wanted_at = "", 0
    write(tx, now)
  end
end

-- keep stores the suspects that a worker holds.
--
--   held   those that it held before, as room returns them     known  the field of its record
function suspects.keep(tx, worker, held, known)
  local text = held[1] and table.concat(held, " ") or false
  if text and text ~= known then
    later.before(tx, "HSET", tx.key.worker .. worker, "suspects", text)
  elseif not text and known then
    later.before(tx, "HDEL", tx.key.worker .. worker, "suspects")
  end
end
