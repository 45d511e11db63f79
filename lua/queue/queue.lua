-- A queue: its line, its counters, how many tasks it can give, and whom it wakes.
--
-- @use store/index
-- @use store/later
-- @use store/messages: alarm
-- @use store/record
-- @use store/try: attempt, try
-- @use store/tx: last, memo

-- own returns what a unit of work changes of queues:
--
--   counts    how much to add to counters, by queue and field
--   wakes     the queues for which to wake an idle worker; how many tokens they have, or true
--   recounts  how much to add to a count of running tasks that is under way, by queue
--   recount   running tasks must be counted again; "go on": the count continues
--   ask       what comes of a worker's request for tasks
local function own(tx)
  local mine = tx.queues
  if not mine then
    mine = {counts = {}, wakes = {}, recounts = {}, recount = false, ask = false}
    tx.queues = mine
  end
  return mine
end

-- next_place returns a place in line, as a score. Priority 3 is first; within a priority, tasks are in the order they came. A
-- task that was given back is at the front of its priority, since it has waited before. Woken agents come before these,
-- in the order they woke.
--
--   how  "new", "woken", "front" or nil
local function next_place(tx, priority, how)
  local given, n = tx.last or last(tx), nil
  if how == "front" then
    n = given.front - 1
    given.front = n
  else
    n = given.seq + 1
    given.seq = n
  end
  if how == "woken" then
    n = n - 281474976710656 -- 2^48: before all other places
  end
  -- 2^50 places for each priority: exact in a double, and enough for years.
  local band = (3 - (priority or 0)) * 1125899906842624
  return string.format("%d", band + n)
end

-- place puts a task in line.
local function place(tx, id, queue, priority, how)
  local add = how == "new" and index.add_new or index.add
  add(tx, tx.key.ready .. queue, next_place(tx, priority, how), id)
  local queues = tx.queues or own(tx)
  queues.wakes[queue] = true
end

local function rate(tx, queue, free, c)
  free.every = c[5] / c[4]
  local whole = c[6] * free.every
  free.full_at = math.max(tonumber(c[7]) or 0, tx.at)
  if free.full_at > tx.at + whole then -- later than for an empty bucket: the clock was set back
    free.full_at = tx.at + whole
    local write = tx.records.written and try or later.after -- wake.write runs after the records are written
    write(tx, "HSET", tx.key.queue .. queue, "full_at", string.format("%.3f", free.full_at))
  end
  -- full_at is stored in thousandths of a ms, so a token counts slightly before it is whole.
  local near = math.min(0.01, free.every / 100)
  local tokens = math.floor((whole - (free.full_at - tx.at) + near) / free.every)
  if tokens < 1 and free.n > 0 then
    free.next = math.ceil(free.full_at - whole + free.every - near)
  end
  free.n = math.min(free.n, tokens)
end

-- unlimited are the slots of every queue of a partition without controls: any number of tasks leaves as many. (math does not
-- exist while a library is being loaded.)
local unlimited = {n = 1 / 0}

-- free_slots returns how many tasks a queue can give now. A queue without controls has no limit. A queue gives none
-- if it is paused, if max_running tasks run, or if its rate is used up. The record is read once a unit; use_rate
-- subtracts what was given.
--
-- The rate is a bucket of `burst` tokens, one for each task. Every per_ms ms it gets `rate` of them back. Only
-- full_at is stored: the instant at which the bucket is full again.
--
-- Returns {n, every, full_at, next}: every is ms for each token, nil without a rate; next is when the bucket has a
-- token again, if only a token is missing
local function free_slots(tx, queue)
  if not tx.root.controlled then
    return unlimited
  end
  local known = memo(tx, "free slots")
  local free = known[queue]
  if free then
    return free
  end
  free = {n = math.huge}
  known[queue] = free
  local c = try(tx, "HMGET", tx.key.queue .. queue, "paused", "running", "max_running", "rate", "per_ms", "burst", "full_at")
  if not c or c[1] then -- a queue that cannot be read counts as paused
    free.n = 0
    return free
  end
  if c[3] then
    free.n = math.max(c[3] - (c[2] or 0), 0)
  end
  if c[4] then
    rate(tx, queue, free, c)
  end
  return free
end

-- use_rate subtracts the tasks that a queue gave, so that it gives no more than its rate allows.
local function use_rate(tx, queue, free, n)
  free.n = free.n - n
  if free.every and n > 0 then
    free.full_at = free.full_at + n * free.every
    later.after(tx, "HSET", tx.key.queue .. queue, "full_at", string.format("%.3f", free.full_at))
  end
end

-- begin_ask returns what comes of a worker's request for tasks, to be filled:
--
--   queues  those that were asked for
--   empty   those of them whose line is empty
--   shared  those of which the worker took a suspect and that have more (task/suspects.lua); false: none
--   stopping, repeated, alone, more, few   look_again
local function begin_ask(tx, empty)
  local ask = {queues = {}, empty = empty, shared = false, more = false, stopping = false, repeated = false, alone = false, few = false}
  own(tx).ask = ask
  return ask
end

-- look_again returns after how many ms a worker must fetch again if no wake token comes. A token is lost if the
-- worker that took it dies before it fetches. 0: the requested queues hold more. The more workers live, the longer
-- each waits, so many idle workers cost little more than a few. -1: the worker must stop (call/stop_worker.lua), and
-- gets no more tasks. -2: the seq of the request, or a later one, was used in this partition before, so the claims are
-- those of a repeat; fetch again after 1000 ms. -3: the worker takes no tasks beside the one that it holds, or until it holds
-- none (task/suspects.lua): fetch again when a claim has ended, or after 1000 ms. -4: when a claim has ended, there is
-- more.
--
--   claims  what the worker got
local function look_again(tx, claims)
  local ask = tx.queues.ask
  if ask.stopping then
    return -1
  elseif ask.alone then
    return -3
  elseif ask.repeated then
    return -2
  elseif ask.more then
    return 0
  elseif ask.few then
    return -4
  elseif claims[1] then
    return 1000
  end
  local workers = try(tx, "ZCARD", tx.key.workers) or 0
  return math.min(math.max(50 * workers, 1000), 10000)
end

-- wake leaves a token for one idle worker of a queue that can give a task. The worker that takes the token leaves
-- another if more tasks are ready. A paused queue gets no token. Nor does a queue that has max_running tasks running:
-- the call that ends one of them leaves the token. A queue that lacks only a token of its rate is put on the
-- clock of throttled queues.
local wake = {}

function wake.note(tx, queue)
  own(tx).wakes[queue] = true
end

--   tokens  how many wake tokens the queue has; true: unknown
local function wake_one(tx, queue, tokens)
  if tx.root.controlled then
    local free = free_slots(tx, queue)
    if free.next then
      try(tx, "ZADD", tx.key.throttled, string.format("%d", free.next), queue)
      alarm.note(tx, free.next)
    end
    if free.n < 1 then
      return
    end
  end
  local key = tx.key.wake .. queue
  if tokens == 0 or tokens == true and try(tx, "LLEN", key) == 0 then
    try(tx, "RPUSH", key, "1")
  end
end

local no_sets = {} -- is not changed

-- pass_on checks the queues of a fetch, since the token that woke the worker can stand for many tasks. It notes whether
-- these queues hold more.
local function pass_on(tx, ask, wakes)
  local shared = ask.shared or no_sets
  for _, queue in ipairs(ask.queues) do
    local empty = ask.empty[queue] and not wakes[queue]
    local ready = empty and 0 or try(tx, "ZCARD", tx.key.ready .. queue)
    if ready then
      if ready > 0 and free_slots(tx, queue).n > 0 then
        ask.more = true
      elseif not shared[queue] then
        try(tx, "DEL", tx.key.wake .. queue)
      end
      wakes[queue] = ready > 0 or shared[queue]
    end
  end
end

function wake.write(tx)
  local wakes, ask = tx.queues.wakes, tx.queues.ask
  if tx.memo then
    tx.memo["free slots"] = nil -- commit has changed what queues can give
  end
  if ask then
    pass_on(tx, ask, wakes)
  end
  for queue, tokens in pairs(wakes) do
    wake_one(tx, queue, tokens)
  end
end

-- count adds to the counters in a queue's record.
local count = {}

function count.add(tx, queue, field, n)
  local counts = (tx.queues or own(tx)).counts
  local of = counts[queue]
  if not of then
    of = {}
    counts[queue] = of
  end
  of[field] = (of[field] or 0) + n
end

-- run counts a task that a worker begins to run (n = 1) or no longer runs (n = -1).
function count.run(tx, queue, worker, n)
  count.add(tx, queue, "running", n)
  local counted = tx.root.recounted
  if counted and worker <= counted then -- a count that is under way has counted this worker already
    local recounts = own(tx).recounts
    recounts[queue] = (recounts[queue] or 0) + n
  end
end

-- again has the running tasks of all queues counted again.
--
--   how  true, or "go on": the count that is under way continues; nil: as this unit has asked for already, or true
function count.again(tx, how)
  local mine = tx.queues or own(tx)
  mine.recount = how or mine.recount or true
end

function count.write(tx)
  for queue, n in pairs(tx.queues.recounts) do
    try(tx, "HINCRBY", tx.key.recount, queue, string.format("%d", n))
  end
  for queue, counts in pairs(tx.queues.counts) do
    for field, n in pairs(counts) do
      if n ~= 0 then
        local total = try(tx, "HINCRBY", tx.key.queue .. queue, field, string.format("%d", n))
        if field == "enqueued" and total == n then -- its first task
          try(tx, "SADD", tx.key.queues, queue)
        end
      end
    end
    if tx.root.controlled and (counts.running or 0) < 0 and
      ((try(tx, "ZCARD", tx.key.ready .. queue) or 0) > 0 or (try(tx, "ZCARD", tx.key.holds) or 0) > 0) then
      wake.note(tx, queue) -- it may have been full
    end
  end
end

-- later_workers returns the workers behind `from`, sorted by name.
local function later_workers(tx, from)
  local names = {}
  for _, worker in ipairs(try(tx, "ZRANGE", tx.key.workers, 0, -1) or {}) do
    names[#names + 1] = worker > from and worker or nil
  end
  table.sort(names)
  return names
end

-- count_some counts the running tasks of the next workers. It returns the last of them, nil if no worker is left.
local function count_some(tx, from, running)
  local looked = 0
  for _, worker in ipairs(later_workers(tx, from)) do
    local ids = try(tx, "ZRANGE", tx.key.claims .. worker, 0, -1) or {}
    record.load(tx, ids)
    for _, id in ipairs(ids) do
      local task = record.get(tx, id)
      if task and task.status == "RUNNING" then
        running[task.queue] = (running[task.queue] or 0) + 1
      end
    end
    looked = looked + #ids + 1
    if looked > 1000 then
      return worker
    end
  end
end

local function finish_count(tx, running)
  local flat = try(tx, "HGETALL", tx.key.recount) or {}
  for i = 1, #flat, 2 do
    running[flat[i]] = (running[flat[i]] or 0) + tonumber(flat[i + 1])
  end
  for _, queue in ipairs(try(tx, "SMEMBERS", tx.key.queues) or {}) do
    local n = running[queue] or 0
    if (tonumber(try(tx, "HGET", tx.key.queue .. queue, "running") or nil) or 0) ~= n then
      try(tx, "HSET", tx.key.queue .. queue, "running", string.format("%d", n))
      wake.note(tx, queue)
    end
  end
end

-- go_to stores the last worker counted; nil: the count is complete.
local function go_to(tx, worker)
  if worker then
    try(tx, "HSET", tx.key.root, "recounted", worker)
    alarm.note(tx, tx.at)
  elseif tx.root.recounted then
    try(tx, "HDEL", tx.key.root, "recounted")
    try(tx, "DEL", tx.key.recount)
  end
  tx.root.recounted = worker or false
end

-- recount_running counts the running tasks of every queue again, from the claims of workers. It is needed when the
-- record of a task that counted as running is missing or ruined: its queue is unknown then, and a queue with
-- max_running would run fewer tasks without end. It reads what has been written.
--
-- A call counts the workers in the order of their names until it has read 1000 claims; the sweep continues. The
-- field recounted of the root holds the last worker counted, and the key recount holds the counts. Tasks that begin or
-- stop to run for a worker that was counted already are added there too (count.run), so the counts are exact.
-- A count that is requested while another is under way begins after it. With 5000 workers of 100 claims each a call
-- takes up to 9 ms more.
local function recount_running(tx)
  local from, running = tx.root.recounted, {}
  if from and tx.queues.recount ~= "go on" then
    try(tx, "HSET", tx.key.root, "recount_again", "1")
    return
  end
  tx.records.tasks = {}
  local worker = count_some(tx, from or "", running)
  for queue, n in pairs(worker and running or {}) do
    try(tx, "HINCRBY", tx.key.recount, queue, string.format("%d", n))
  end
  if not worker then
    finish_count(tx, running)
  end
  go_to(tx, worker)
  if from and not worker and try(tx, "HDEL", tx.key.root, "recount_again") == 1 then
    go_to(tx, "")
  end
end

-- write_queues writes what a unit of work changes of queues. Tokens are written last, since they depend on the lines.
local function write_queues(tx)
  count.write(tx)
  if tx.queues.recount then
    recount_running(tx)
  end
  wake.write(tx)
end

-- held_sets returns the sets of held tasks of each queue, each set as store/state.lua: set_of names it. If the list of sets cannot be
-- read, there are none.
local function held_sets(tx)
  local sets = attempt("ZRANGE", tx.key.holds, 0, -1)
  if sets.err or not sets[1] then
    return no_sets
  end
  local of = {}
  for _, set in ipairs(sets) do
    local queue = string.match(set, "^([^,]+),[^,]")
    if queue then
      of[queue] = of[queue] or {}
      table.insert(of[queue], set)
    end
  end
  return of
end
