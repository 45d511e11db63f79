-- keys names every key of a partition. The root holds the hash tag, so all of them are in one slot.
-- docs/reference/keys.md says what each key holds; a test compares the two.
--
-- The names depend on the root alone, so they are kept from call to call, for up to 64 roots. A caller can send any key. So
-- nothing is copied of a long one, and names are kept only of a root that was read and belongs to a namespace.
local known, count = {}, 0
local keys = {}

local function name_all(root)
  local p = root .. ":"
  return {
    root = root,                   -- hash     version, partitions, created_at, events, event_*, armed, turn_of, turn_until, seq, front, number, controlled, recounted, recount_again, default_timeout_ms, kind:<kind>
    spec = p .. "spec:",           -- string   + id: the task as it was enqueued; written once
    state = p .. "state:",         -- string   + id: what changes of a task; absent for most tasks until they are first claimed
    payload = p .. "payload:",     -- string   + id: a payload that is too large for the spec
    result = p .. "result:",       -- string   + id: a result or error that is too large for the state
    children = p .. "children:",   -- list     + id: ids of all children of a task
    ready = p .. "ready:",         -- zset     + queue: ids that can be fetched, by priority and sequence
    held = p .. "held:",           -- zset     + set: ids that only some workers can claim, in the order in which they are claimed (store/state.lua: set_of)
    holds = p .. "holds",          -- zset     the names of these sets
    queue = p .. "queue:",         -- hash     + queue: counters of running, ended and refused tasks; paused, max_running, max_length, rate
    wake = p .. "wake:",           -- list     + queue: at most one token, for one idle worker
    dead = p .. "dead:",           -- zset     + queue: FAILED and CANCELLED ids still kept, by end
    claims = p .. "claims:",       -- zset     + worker: ids that it holds, by the fetch that gave them
    worker = p .. "worker:",       -- hash     + worker: seq of its newest fetch, and what it said of itself
    isolation = p .. "isolation",  -- hash     the worker that takes one suspect at a time, although others wait in line
    queues = p .. "queues",        -- set      names of all queues
    wait = p .. "wait:",           -- hash     + id: the current wait of an agent
    pending = p .. "pending:",     -- zset     + id: names of the wait's members that have not ended, by priority and place
    settled = p .. "settled:",     -- list     + id: names of the members that have ended, in the order they did
    ends = p .. "ends:",           -- list     + id: of an agent that collects: names of children that have ended, and that it was not given yet
    patience = p .. "patience:",   -- zset     + id: names of members that have a limit of their own in the wait, by its instant
    journal = p .. "journal:",     -- hash     + id: the journal of an agent: its checkpoint, and each entry since
    deadlines = p .. "deadlines",  -- zset     live ids that have a deadline, by deadline_at
    limits = p .. "limits",        -- zset     live ids, by their nearest instant: queue or attempt limit, warning, grace
    delayed = p .. "delayed",      -- zset     PENDING ids that cannot start yet, by available_at
    waits = p .. "waits",          -- zset     WAITING ids whose wait has a limit, by when it ends
    workers = p .. "workers",      -- zset     live workers, by the end of their lease
    draining = p .. "draining",    -- zset     ended ids whose children are not all ended, by end
    throttled = p .. "throttled",  -- zset     queues that have used up their rate, by when they can give tasks again
    retained = p .. "retained",    -- zset     terminal ids, by when the record is removed
    idem = p .. "idem",            -- hash     idempotency key: id and digest
    forget = p .. "forget",        -- zset     idempotency keys, by when they are forgotten
    recount = p .. "recount",      -- hash     during a recount of running tasks: queue, and how many so far
    broken = p .. "broken",        -- zset     ids whose record cannot be used, by when that was seen
    figures = p .. "figures:",     -- hash     + kind: how its tasks ended and how long they took, counted
    kinds = p .. "kinds",          -- set      kinds that have a hash of figures; "-" for all others
    flows = p .. "flows",          -- hash     in partition 0: the versions of each definition of a flow, the oldest first
    flow = p .. "flow:",           -- hash     + id: the texts of the versions of a definition
    events = p .. "events",        -- stream   events: one entry a unit of work, as a rule
    alarm = p .. "alarm",          -- channel  the earliest instant became earlier
    ended = p .. "ended",          -- channel  ids of watched tasks that ended
    stop = p .. "stop:",           -- channel  + worker: attempts that must stop

    partition = string.match(root, "{(%d+)}$") or "",
  }
end

-- of returns the names of a root: a namespace of up to 128 bytes, :{, up to 3 digits and }.
function keys.of(root)
  local names = known[root]
  if not names then
    if #root > 134 then
      error("the key has " .. #root .. " bytes, and the root of a partition has 134 at most", 0)
    end
    names = name_all(root)
  end
  return names
end

-- keep keeps the names of a root that was read.
function keys.keep(names)
  if not known[names.root] then
    if count == 64 then
      known, count = {}, 0
    end
    known[names.root], count = names, count + 1
  end
end
