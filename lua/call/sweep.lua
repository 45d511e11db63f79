-- sweep: a reaper ends, starts and removes what is due, on all clocks.
--
-- ARGV[1]  reaper
-- ARGV[2]  how many tasks of a clock at the most, 1 to 1000; one call does 250
-- ARGV[3]  ms of fall-back: the longest that the reaper with the turn sleeps
--
-- One call ends tasks, writes events and wakes agents, so a reaper that is killed at any time loses nothing. The
-- oldest are done first. If a clock had a full batch, wait is 0. A clock or a record that cannot be read holds up
-- nothing else.
--
-- Returns  {now, wait, turn, {name, n, …}, error, …}
--            wait  ms until this reaper must sweep again; with the turn, until something is due
--            turn  1: this reaper has the turn and must be precise; 0: another reaper has it
-- Ends     FAILED, CANCELLED; timers: COMPLETED
-- Flags    allow-oom        a full Redis must still drain
--
-- @use check/values: names, whole
-- @use queue/queue: count
-- @use store/tell
-- @use store/tx: begin, read_root
-- @use sweep/clocks: sweep_delayed, sweep_draining, sweep_forget, sweep_limits, sweep_retained, sweep_throttled, sweep_waits, sweep_workers
-- @use sweep/look
-- @use sweep/turn
-- @use unit/unit

-- go_on_counting makes commit continue the count of running tasks.
local function go_on_counting(tx)
  count.again(tx, "go on")
end

-- The clocks whose entries are no tasks.
local of_others = {workers = true, throttled = true, forget = true}

local function look_at_all(tx, s)
  local key, past, due = tx.key, "(" .. tx.now, tx.now
  local function at(name, bound, step, limit)
    look(tx, s, {key = key[name], bound = bound, step = step, most = limit or s.batch, tasks = not of_others[name]})
  end
  at("draining", due, sweep_draining)
  at("deadlines", past, sweep_limits)
  at("limits", past, sweep_limits)
  at("delayed", due, sweep_delayed) -- before the waits: a timer that is due is counted
  at("waits", past, sweep_waits)
  at("workers", past, sweep_workers, 1)
  at("throttled", due, sweep_throttled)
  at("retained", due, sweep_retained)
  at("forget", due, sweep_forget)
  if tx.root.recounted then
    unit(tx, go_on_counting)
    s.full = s.full or tx.root.recounted ~= false
  end
end

-- most bounds the tasks per clock, so that a sweep is short even if each task belongs to another queue, whose end takes 65 µs.
local most = 250

local function sweep(keys, argv)
  local s = {reaper = names.word("reaper", argv[1]), batch = whole(argv[2], 1, 1000), fallback = whole(argv[3], 1, 4503599627370496),
    counts = {}, errors = {}, full = false}
  if not s.batch or not s.fallback then
    error("argument 2 must be a number of tasks from 1 to 1000, and argument 3 ms of fall-back, at least 1", 0)
  end
  s.batch = math.min(s.batch, most)
  local tx = read_root(begin(keys[1]))
  local precise = turn.has(tx, s)
  if not precise and turn.is_kept(tx) then
    return {tx.at, turn.pass(tx, s), 0, {}}
  end
  look_at_all(tx, s)
  for _, fault in ipairs(tx.reply.failed) do
    s.errors[#s.errors + 1] = fault
  end
  local wait = precise and turn.keep(tx, s) or s.full and 0 or turn.pass(tx, s)
  s.counts.timed_out, s.counts.fired = tx.reply.timed_out, tx.reply.timers_fired
  local counts = {}
  for what, n in pairs(s.counts) do
    counts[#counts + 1] = what
    counts[#counts + 1] = n
  end
  return tell.reply(tx, {tx.at, wait, precise and 1 or 0, counts, unpack(s.errors)})
end
