-- Held tasks: no live worker can run them. A held task is PENDING and not in line, so it costs nothing while it waits. It
-- keeps a place in line and the limit of its line, and it ends as a task in line does. It goes back to its place as soon as a
-- worker that can run it describes itself.
--
--   held     unhandled: no worker of its queue has a handler for its kind
--            diverged: its code has changed, so that the programs in held_by cannot replay it
--   held_at  since when
--   held_by  those programs, with commas between them. They stay when the task goes back, until it has been replayed
--
-- Tasks that the same workers can run are in one set (store/state.lua: held_set), so no call looks at tasks one by one. A
-- sweep looks at all sets every 30 s. It is needed after a failover that has lost a description. A worker that does not
-- describe itself is offered some tasks with each fetch.
--
-- @use queue/queue: wake
-- @use store/events: emit
-- @use store/index
-- @use store/later
-- @use store/record
-- @use store/state: held_set, set_of
-- @use store/tx: memo
-- @use task/finish: load_task
-- @use task/place: end_attempt, keep_held, line_limit, mend_place, put_back, set_limit

-- has reports whether a text of words, with a space before and after each, contains a word.
local function has(text, word)
  return string.find(text, " " .. word .. " ", 1, true) ~= nil
end

-- read_worker returns what a worker has said of itself: kinds, queues and program (call/describe_worker.lua); lacks: the kinds
-- for which it has given tasks back, if it has named none; state; leaves: it takes no more tasks.
local function read_worker(tx, name)
  local f = redis.call("HMGET", tx.key.worker .. name, "kinds", "queues", "program", "lacks", "state", "stop_at")
  return {name = name, kinds = f[1] or "", queues = f[2] or "", program = f[3] or "", lacks = f[4] or "",
    state = f[5], leaves = f[5] == "draining" or f[6] ~= false}
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

-- fits reports whether a worker may be able to run the tasks of a set. A worker that names no queues or kinds may serve any.
--
--   set  as held_set returns it
local function fits(worker, set)
  local queue, kind, programs = string.match(set, "^([^,]*),([^,]*),?(.*)$")
  return not worker.leaves and (worker.queues == "" or has(worker.queues, queue)) and
    (worker.kinds == "" and not has(worker.lacks, kind) or handles(worker.kinds, kind)) and
    not (programs ~= "" and string.find("," .. programs .. ",", "," .. (worker.program == "" and "-" or worker.program) .. ",", 1, true))
end

-- crew returns live workers but one, up to `most`: of more workers others in each ms. A fleet has few programs, so workers that
-- say the same of themselves count as one.
local function crew(tx, most, but)
  local n, workers, seen = redis.call("ZCARD", tx.key.workers), {}, {}
  local from = n > most and tx.at % (n - most + 1) or 0
  for _, name in ipairs(redis.call("ZRANGEBYSCORE", tx.key.workers, tx.now, "+inf", "LIMIT", from, most)) do
    local worker = name ~= but and read_worker(tx, name) or {leaves = true}
    local said = not worker.leaves and worker.kinds .. "," .. worker.queues .. "," .. worker.program .. "," .. worker.lacks
    if said and not seen[said] then
      workers[#workers + 1], seen[said] = worker, true
    end
  end
  return workers
end

-- somebody reports whether a live worker other than the reporter fits a set. While tasks of the set are held nobody does: they
-- would have gone back. So this looks at the fleet for the first task, and not for each. Of many workers it looks at some, and
-- the sweep at others.
local function somebody(tx, set, reporter)
  local known, crews = memo(tx, "somebody"), memo(tx, "crew")
  if known[set] == nil then
    known[set] = false
    if redis.call("EXISTS", tx.key.held .. set) == 0 then
      crews.all = crews.all or crew(tx, 64, reporter)
      for _, worker in ipairs(crews.all) do
        known[set] = known[set] or fits(worker, set)
      end
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
  local set, limit = set_of(task, why), tonumber(task.line_at) or line_limit(task, tx.at)
  if somebody(tx, set, worker) then
    emit(tx, "all", "task_released", task)
    put_back(tx, task, start, true, true)
    return
  end
  emit(tx, "all", "task_held", task, "why=" .. why)
  end_attempt(tx, task)
  record.set(tx, task, "held", why)
  record.set(tx, task, "held_at", tx.now)
  set_limit(tx, task, limit)
  keep_held(tx, task, set)
end

-- unhold puts up to `most` tasks of a set back in line, at the places that they kept. It returns how many it has looked at.
local function unhold(tx, set, most)
  local key = tx.key.held .. set
  local words, ids = redis.call("ZRANGE", key, 0, most - 1, "WITHSCORES"), {}
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
    index.remove(tx, tx.key.holds, set)
  end
  return #ids
end

-- unhold_for puts up to `most` tasks back in line that a worker may be able to run. It returns how many more it could.
local function unhold_for(tx, worker, most)
  for _, set in ipairs(redis.call("ZRANGE", tx.key.holds, 0, -1)) do
    if most > 0 and fits(worker, set) then
      most = most - unhold(tx, set, most)
    end
  end
  return most
end

-- offer puts up to eight held tasks back in line for a worker that takes tasks of some queues and has not described itself: it may
-- be able to run them. They are few, because it may have no handler for them, and it gets them with its next request.
local function offer(tx, name, queues)
  local worker = read_worker(tx, name)
  if not worker.state and not worker.leaves and #worker.lacks < most_lacks then
    worker.queues = " " .. table.concat(queues, " ") .. " "
    unhold_for(tx, worker, 8)
  end
end

-- forget_empty removes the sets from the list whose tasks have all ended.
local function forget_empty(tx, sets)
  for i = 1, #sets, 1000 do
    local some = {unpack(sets, i, math.min(i + 999, #sets))}
    local keys = {}
    for n, set in ipairs(some) do
      keys[n] = tx.key.held .. set
    end
    local n = redis.call("EXISTS", unpack(keys))
    for _, set in ipairs(n < #some and some or {}) do
      if redis.call("EXISTS", tx.key.held .. set) == 0 then
        index.remove(tx, tx.key.holds, set)
      end
    end
  end
end

-- sweep_held looks at the sets: tasks that a live worker may be able to run go back in line, up to `most`. It returns how many.
-- One call compares 20,000 pairs of a set and workers that differ; of more sets it looks at others in each ms.
local function sweep_held(tx, most)
  local sets, left = redis.call("ZRANGE", tx.key.holds, 0, -1), most
  forget_empty(tx, sets)
  local workers = sets[1] and crew(tx, 1000, nil) or {}
  local looks = math.min(#sets, math.ceil(20000 / math.max(#workers, 1)))
  local from = tx.at % math.max(#sets - looks + 1, 1)
  for i = from + 1, from + looks do
    local fit = false
    for _, worker in ipairs(left > 0 and workers or {}) do
      fit = fit or fits(worker, sets[i])
    end
    left = fit and left - unhold(tx, sets[i], left) or left
  end
  tx.root.holds_at = sets[1] and tx.at + (left > 0 and 30000 or 0)
  if tx.root.holds_at then
    later.after(tx, "HSET", tx.key.root, "holds_at", string.format("%d", tx.root.holds_at))
  else
    later.after(tx, "HDEL", tx.key.root, "holds_at")
  end
  return most - left
end
