-- Held tasks: no live worker can run them. A held task is PENDING and not in line, so it costs nothing while it waits. It
-- keeps a place in line and the limit of its line, and it ends as a task in line does. It goes back to its place as soon as a
-- worker that can run it describes itself.
--
--   held     unhandled: no worker of its queue has a handler for its kind
--            diverged: its code has changed, so that the programs in held_by cannot replay it
--   held_at  since when
--   held_by  those programs, with commas between them. They stay when the task goes back, until it has been replayed
--
-- Tasks that the same workers can run are in one set (store/state.lua: held_set), so no call looks at tasks one by one. holds lists
-- the sets by the instant at which the sweep looks at them next: every 30 s. The sweep finds what no other call does: a worker that
-- has not described itself, or whose description a failover has lost.
--
-- @use queue/held_sets
-- @use queue/queue: wake
-- @use store/events: emit
-- @use store/index
-- @use store/later
-- @use store/record
-- @use store/state: held_set, set_of
-- @use store/try: attempt, try
-- @use store/tx: memo
-- @use task/finish: load_task
-- @use task/place: end_attempt, forget_held, keep_held, line_end, line_limit, look_later, mend_place, put_back, set_limit

-- has reports whether a text of words, with a space before and after each, contains a word.
local function has(text, word)
  return string.find(text, " " .. word .. " ", 1, true) ~= nil
end

-- read_worker returns what a worker has said of itself: kinds, queues and program (call/describe_worker.lua); lacks: the kinds
-- for which it has given tasks back, if it has named none; state; leaves: it takes no more tasks. If its record cannot be read, it
-- has said nothing.
local function read_worker(tx, name)
  local f = attempt("HMGET", tx.key.worker .. name, "kinds", "queues", "program", "lacks", "state", "stop_at")
  f = f.err and {} or f
  return {name = name, kinds = f[1] or "", queues = f[2] or "", program = f[3] or "", lacks = f[4] or "",
    state = f[5] or "", leaves = f[5] == "draining" or (f[6] or false) ~= false}
end

-- handles reports whether a kind is among those of a worker: by its name, or by a pattern such as mail.*, which stands for all
-- kinds that begin so.
local function handles(kinds, kind)
  if has(kinds, kind) then
    return true
  end
  for start in string.gmatch(kinds, " ([^ ]*)%*") do
    if string.sub(kind, 1, #start) == start then
      return true
    end
  end
  return false
end

-- fits reports whether a worker may be able to run the tasks of a set. A worker that names no queues or kinds may serve any. An agent
-- that a program cannot replay goes to none that is unknown.
--
--   set  as held_set returns it
local function fits(worker, set)
  local queue, kind, programs = string.match(set, "^([^,]*),([^,]*),?(.*)$")
  return not worker.leaves and (worker.queues == "" or has(worker.queues, queue)) and
    (worker.kinds == "" and not has(worker.lacks, kind) or handles(worker.kinds, kind)) and
    (programs == "" or worker.program ~= "" and not string.find("," .. programs .. ",", "," .. worker.program .. ",", 1, true))
end

-- crew returns live workers but one, up to 1,000: of more workers others in each ms. A fleet has few programs, so workers that say
-- the same of themselves count as one.
local function crew(tx, but)
  local n, workers, seen = attempt("ZCOUNT", tx.key.workers, tx.now, "+inf"), {}, {}
  if type(n) ~= "number" then
    return workers
  end
  local from = n > 1000 and tx.at % (n - 999) or 0
  for _, name in ipairs(redis.call("ZRANGEBYSCORE", tx.key.workers, tx.now, "+inf", "LIMIT", from, 1000)) do
    local worker = name ~= but and read_worker(tx, name) or {leaves = true}
    local said = not worker.leaves and worker.kinds .. "," .. worker.queues .. "," .. worker.program .. "," .. worker.lacks
    if said and not seen[said] then
      workers[#workers + 1], seen[said] = worker, true
    end
  end
  return workers
end

-- any_fits reports whether a worker of a crew fits a set.
local function any_fits(workers, set)
  for _, worker in ipairs(workers) do
    if fits(worker, set) then
      return true
    end
  end
  return false
end

-- most_sets bounds the sets of a partition, because several calls look at all of them.
local most_sets = 1000

-- must_pass reports whether a task goes back in line and is not held: a live worker other than the reporter fits its set, or there
-- are too many sets. While tasks of a set are held no worker fits it, because they would have gone back. So this looks at the fleet
-- for the first task of a set only.
local function must_pass(tx, set, reporter)
  local known, crews = memo(tx, "must pass"), memo(tx, "crew")
  if known[set] == nil then
    known[set] = false
    if attempt("EXISTS", tx.key.held .. set) == 0 then
      local sets = attempt("ZCARD", tx.key.holds)
      crews.all = crews.all or crew(tx, reporter)
      known[set] = type(sets) == "number" and sets >= most_sets or any_fits(crews.all, set)
    end
  end
  return known[set]
end

-- most_lacks is how many bytes are kept of the kinds that a worker lacks.
local most_lacks = 4096

-- learn stores that a worker has no handler for a kind, if it has named no kinds.
local function learn(tx, worker, kind)
  if worker.kinds == "" and #worker.lacks < most_lacks and not has(worker.lacks, kind) and redis.call("ZSCORE", tx.key.workers, worker.name) then
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
  if must_pass(tx, set, worker) then
    emit(tx, "all", "task_released", task)
    put_back(tx, task, start, true, true)
    return
  end
  emit(tx, why == "diverged" and "terminal" or "all", "task_held", task, "why=" .. why)
  end_attempt(tx, task)
  record.set(tx, task, "held", why)
  record.set(tx, task, "held_at", tx.now)
  set_limit(tx, task, limit)
  keep_held(tx, task, set)
end

-- unhold puts up to `most` tasks of a set back in line, at the places that they kept. It returns how many it has looked at.
local function unhold(tx, set, most)
  local key = tx.key.held .. set
  local words, ids = try(tx, "ZRANGE", key, 0, most - 1, "WITHSCORES") or {}, {}
  for i = 1, #words, 2 do
    ids[#ids + 1] = words[i]
  end
  record.load(tx, ids)
  for i, id in ipairs(ids) do
    tx.on = id
    local task = load_task(tx, id)
    index.remove(tx, key, id)
    if task and held_set(task) == set then
      record.set(tx, task, "held", nil)
      record.set(tx, task, "held_at", nil)
      record.set(tx, task, "ready_at", tx.now)
      index.add(tx, tx.key.ready .. task.queue, string.format("%d", words[2 * i]), id)
      wake.note(tx, task.queue)
      emit(tx, "all", "task_unheld", task)
    elseif task then
      mend_place(tx, task)
    end
  end
  tx.on = nil
  if #ids < most then
    forget_held(tx, set)
  end
  return #ids
end

-- unhold_for puts up to `most` tasks back in line that a worker may be able to run. It returns how many more it could.
local function unhold_for(tx, worker, most)
  for _, set in ipairs(held_sets(tx)) do
    if most > 0 and fits(worker, set) then
      most = most - unhold(tx, set, most)
    end
  end
  return most
end

-- offer puts up to eight held tasks back in line for a worker that got no task and has not described itself: it may be able to run
-- them. They are few, because it may have no handler for them. It gets them with its next request.
local function offer(tx, name, queues)
  local worker = held_sets(tx)[1] and read_worker(tx, name)
  if worker and #worker.lacks < most_lacks then
    worker.queues = " " .. table.concat(queues, " ") .. " "
    unhold_for(tx, worker, 8)
  end
end

-- sweep_held looks at a set: if a live worker may be able to run its tasks, they go back in line.
local function sweep_held(tx, r, set)
  local crews, most = memo(tx, "crew"), r.batch - (r.counts.unheld or 0)
  tx.on = nil -- not a task
  if attempt("EXISTS", tx.key.held .. set) == 0 then
    forget_held(tx, set)
    return
  end
  crews.all = crews.all or crew(tx, nil)
  if most == 0 then
    r.full = true
  elseif any_fits(crews.all, set) then
    local n = unhold(tx, set, most)
    r.counts.unheld, r.full = (r.counts.unheld or 0) + n, r.full or n == most
  else
    look_later(tx, set)
  end
end
