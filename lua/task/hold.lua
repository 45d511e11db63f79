-- Held tasks: no live worker can run them. A held task is PENDING and not in line, so it costs nothing while it waits. It keeps
-- the limit of its line, and it ends as a task in line does. A worker that can run it gets it with its next request for tasks
-- (task/claim.lua).
--
--   held     unhandled: no worker of its queue has a handler for its kind
--            diverged: its code has changed, so that the programs in held_by cannot replay it
--   held_at  since when
--   held_by  those programs, with commas between them. They stay when the task is claimed, until it has been replayed
--
-- Tasks that the same workers can run are in one set (store/state.lua: held_set), and holds lists the sets. So no call looks at
-- tasks one by one.
--
-- @use queue/queue: held_sets, wake
-- @use store/events: emit
-- @use store/later
-- @use store/record
-- @use store/state: set_of
-- @use store/try: attempt
-- @use store/tx: memo
-- @use task/place: end_attempt, keep_held, line_end, line_limit, put_back, set_limit

-- has reports whether a text of words, with a space before and after each, contains a word.
local function has(text, word)
  return string.find(text, " " .. word .. " ", 1, true) ~= nil
end

-- lacks_ms is how long a worker is known to lack kinds. Then it may have been started anew, with the same name and more handlers.
local lacks_ms = 60000

-- read_worker returns what a worker has said of itself: state; kinds, queues and program (call/describe_worker.lua); lacks: the
-- kinds for which it has given tasks back, if it has named none; leaves: it takes no more tasks. A worker without a state has not
-- described itself, and one without a program has described itself to an older version. If its record cannot be read, it has said
-- nothing.
local function read_worker(tx, name)
  local f = attempt("HMGET", tx.key.worker .. name, "state", "kinds", "queues", "program", "lacks", "lacks_at", "stop_at")
  f = f.err and {} or f
  local lacks_at = tonumber(f[6] or nil)
  local known = lacks_at and lacks_at <= tx.at and lacks_at + lacks_ms > tx.at
  return {name = name, state = f[1] or "", kinds = f[2] or "", queues = f[3] or "", program = f[4] or "", lacks = known and f[5] or "",
    leaves = f[1] == "draining" or (f[7] or false) ~= false}
end

-- handles reports whether a kind is among those of a worker: by its name, or by a pattern such as mail.*, which stands for all
-- kinds that begin so.
local function handles(worker, kind)
  if has(worker.kinds, kind) then
    return true
  elseif not worker.starts then
    worker.starts = {}
    for start in string.gmatch(worker.kinds, "([^ *]*)%* ") do
      worker.starts[#worker.starts + 1] = start
    end
  end
  for _, start in ipairs(worker.starts) do
    if string.sub(kind, 1, #start) == start then
      return true
    end
  end
  return false
end

-- most_lacks is how many bytes are kept of the kinds that a worker lacks. It counts as lacking all others then.
local most_lacks = 4096

-- fits reports whether a worker may be able to run the tasks of a set. A worker that names no queues or kinds may serve any. An agent
-- that a program cannot replay goes to no worker that has not said which program it runs.
--
--   set  as held_set returns it
local function fits(worker, set)
  local queue, kind, programs = string.match(set, "^([^,]+),([^,!]+),?([^!]*)")
  return queue and not worker.leaves and (worker.queues == "" or has(worker.queues, queue)) and
    (worker.kinds == "" and #worker.lacks < most_lacks and not has(worker.lacks, kind) or handles(worker, kind)) and
    (programs == "" or worker.program ~= "" and not string.find("," .. programs .. ",", "," .. worker.program .. ",", 1, true))
end

-- fitting returns the sets of held tasks that a worker may be able to run, by queue.
--
--   worker  the worker as read_worker returns it, or its name
local function fitting(tx, worker)
  local of = held_sets(tx)
  if not next(of) then
    return of
  elseif type(worker) == "string" then
    worker = read_worker(tx, worker)
  end
  for queue, sets in pairs(of) do
    local left = {}
    for _, set in ipairs(sets) do
      left[#left + 1] = fits(worker, set) and set or nil
    end
    of[queue] = left
  end
  return of
end

-- crew returns live workers that have described themselves, but one, up to 64: of more workers others in each ms. A fleet has few
-- programs, so workers that say the same of themselves count as one.
local function crew(tx, but)
  local n, workers, seen = attempt("ZCOUNT", tx.key.workers, tx.now, "+inf"), {}, {}
  if type(n) ~= "number" then
    return workers
  end
  local from = n > 64 and tx.at % (n - 63) or 0
  for _, name in ipairs(redis.call("ZRANGEBYSCORE", tx.key.workers, tx.now, "+inf", "LIMIT", from, 64)) do
    local worker = name ~= but and read_worker(tx, name) or {state = ""}
    local said = worker.state ~= "" and worker.kinds .. "," .. worker.queues .. "," .. worker.program .. "," .. worker.lacks
    if said and not seen[said] then
      workers[#workers + 1], seen[said] = worker, true
    end
  end
  return workers
end

-- most_sets bounds the sets of a partition, because each request for tasks looks at all of them.
local most_sets = 256

-- who_fits returns which live worker other than the reporter fits a set: "old" for one of an older version, which does not find held
-- tasks; "new" for another. It returns "none" if there are too many sets for one more, and nil if nobody fits.
local function who_fits(tx, set, reporter)
  local crews, found = memo(tx, "crew"), nil
  crews.all = crews.all or crew(tx, reporter)
  for _, worker in ipairs(crews.all) do
    if fits(worker, set) then
      found = (found == "old" or worker.program == "") and "old" or "new"
    end
  end
  local sets = not found and attempt("ZCARD", tx.key.holds)
  return found or type(sets) == "number" and sets >= most_sets and "none" or nil
end

-- most_passes is how often a task is passed on before it is held, although a live worker fits: that worker may be busy for long.
local most_passes = 5

-- must_pass reports whether a task goes back in line with a short delay and is not held, because a worker that fits is likely to be
-- idle. If tasks of its set are held, it is not: it would have them.
local function must_pass(tx, task, set, reporter)
  local known = memo(tx, "who fits")
  if known[set] == nil then
    known[set] = attempt("EXISTS", tx.key.held .. set) == 0 and who_fits(tx, set, reporter) or false
  end
  return known[set] == "new" and tonumber(task.passed_on or 0) < most_passes or known[set] == "old" or known[set] == "none"
end

-- learn stores that a worker has no handler for a kind, if it has named no kinds.
local function learn(tx, worker, kind)
  if worker.kinds == "" and #worker.lacks < most_lacks and not has(worker.lacks, kind) and type(attempt("ZSCORE", tx.key.workers, worker.name)) == "string" then
    if worker.lacks == "" then
      later.before(tx, "HSET", tx.key.worker .. worker.name, "lacks_at", tx.now)
    end
    worker.lacks = (worker.lacks == "" and " " or worker.lacks) .. kind .. " "
    later.before(tx, "HSET", tx.key.worker .. worker.name, "lacks", worker.lacks)
  end
end

-- add_program adds a program to the eight newest that cannot replay an agent.
local function add_program(tx, task, program)
  local list = task.held_by or ""
  program = program == "" and "-" or program
  if not string.find("," .. list .. ",", "," .. program .. ",", 1, true) then
    list = string.gsub(list, "^[^,]*,(.*,.*,.*,.*,.*,.*,.*)$", "%1")
    record.set(tx, task, "held_by", list == "" and program or list .. "," .. program)
  end
end

-- hold holds a task whose worker cannot run it. If another live worker may be able to, the task goes back in line with a short
-- delay instead (task/place.lua: put_back).
--
--   why    unhandled or diverged
--   start  the latest instant at which it can be claimed again in that case
local function hold(tx, task, why, worker, start)
  local known = memo(tx, "reporter")
  known[worker] = known[worker] or read_worker(tx, worker)
  if why == "diverged" then
    add_program(tx, task, known[worker].program)
  else
    learn(tx, known[worker], task.kind)
  end
  local set, limit = set_of(task, why), line_end(task) or line_limit(task, tx.at)
  if must_pass(tx, task, set, worker) then
    emit(tx, "all", "task_released", task)
    put_back(tx, task, start, true, true)
    return
  end
  if why == "diverged" then
    emit(tx, "terminal", "task_diverged", task)
  else
    emit(tx, "all", "task_held", task)
  end
  end_attempt(tx, task)
  record.set(tx, task, "held", why)
  record.set(tx, task, "held_at", tx.now)
  set_limit(tx, task, limit)
  keep_held(tx, task, set)
end

-- call_for wakes a worker of the queues in which tasks are held that this worker fits. It has just described itself, and may wait.
local function call_for(tx, worker)
  for queue, sets in pairs(fitting(tx, worker)) do
    if sets[1] then
      wake.note(tx, queue)
    end
  end
end
