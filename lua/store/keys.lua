-- keys names every key of a partition. The root holds the hash tag, so all of them live in one slot.
-- docs/keys.md says what each one holds; a test compares the two.
--
-- The names follow from the root alone, so they are kept from call to call, for a bounded number of
-- roots.
local known, count = {}, 0

local function name_all(root)
  local p = root .. ":"
  return {
    root = root,                   -- hash     version, partitions, created_at, events, event_*, armed, turn, turn_until, seq, front, controlled, recounted, recount_again, kind:<kind>
    spec = p .. "spec:",           -- string   + id: what was asked for; written once
    state = p .. "state:",         -- string   + id: what became of it; absent until a task is first claimed, as a rule
    payload = p .. "payload:",     -- string   + id: a payload that is too large for the spec
    result = p .. "result:",       -- string   + id: a result or error that is too large for the state
    children = p .. "children:",   -- list     + id: ids of all children of a task
    ready = p .. "ready:",         -- zset     + queue: ids that may be fetched, by priority and sequence
    queue = p .. "queue:",         -- hash     + queue: running, what ended how, counted; paused, max_running, rate
    wake = p .. "wake:",           -- list     + queue: at most one token, for one idle worker
    dead = p .. "dead:",           -- zset     + queue: FAILED and CANCELLED ids still kept, by end
    claims = p .. "claims:",       -- zset     + worker: ids that it holds, by the fetch that gave them
    worker = p .. "worker:",       -- hash     + worker: seq of its newest fetch
    queues = p .. "queues",        -- set      names of all queues
    wait = p .. "wait:",           -- hash     + id: the wait that an agent is at
    pending = p .. "pending:",     -- zset     + id: names of its members that have not ended, by priority and place
    settled = p .. "settled:",     -- list     + id: names of those that have, in the order they did
    patience = p .. "patience:",   -- zset     + id: names of members that have a limit of their own in it, by when
    journal = p .. "journal:",     -- hash     + id: what an agent remembers: its checkpoint, and each entry since
    deadlines = p .. "deadlines",  -- zset     live ids that have a deadline, by deadline_at
    limits = p .. "limits",        -- zset     live ids, by their nearest instant: queue or attempt limit, warning, grace
    delayed = p .. "delayed",      -- zset     PENDING ids that may not start yet, by available_at
    waits = p .. "waits",          -- zset     WAITING ids whose wait has a limit, by when it ends
    workers = p .. "workers",      -- zset     live workers, by the end of their lease
    draining = p .. "draining",    -- zset     ended ids whose children are not all ended, by end
    throttled = p .. "throttled",  -- zset     queues that gave all that their rate allows, by when they may give again
    retained = p .. "retained",    -- zset     terminal ids, by when the record goes
    idem = p .. "idem",            -- hash     idempotency key: id and digest
    forget = p .. "forget",        -- zset     idempotency keys, by when they are forgotten
    recount = p .. "recount",      -- hash     while what runs is counted anew: queue, and how many so far
    broken = p .. "broken",        -- zset     ids whose record cannot be worked with, by when that was seen
    figures = p .. "figures:",     -- hash     + kind: how its tasks ended and how long they took, counted
    kinds = p .. "kinds",          -- set      kinds that have such a hash; "-" for all others
    events = p .. "events",        -- stream   what happened: one entry a unit of work
    alarm = p .. "alarm",          -- channel  the earliest instant became earlier
    ended = p .. "ended",          -- channel  ids of watched tasks that ended
    stop = p .. "stop:",           -- channel  + worker: attempts that must stop

    partition = string.match(root, "{(%d+)}$") or "",
  }
end

local function keys(root)
  local names = known[root]
  if not names then
    if count == 64 then
      known, count = {}, 0
    end
    names = name_all(root)
    known[root], count = names, count + 1
  end
  return names
end
