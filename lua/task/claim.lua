-- Claims: what a worker holds, from the request for tasks to the return of a claim.
--
-- @use check/values: names, whole
-- @use queue/queue: begin_ask, count, free_slots, use_rate
-- @use store/events: emit
-- @use store/index
-- @use store/later
-- @use store/messages: alarm
-- @use store/record
-- @use store/state: held_set, is_attempt_limit
-- @use store/try
-- @use task/body: payload
-- @use task/ending: cancelled
-- @use task/finish: finish, load_task
-- @use task/hold: fitting
-- @use task/identity: idempotency, incarnation
-- @use task/place: forget_empty, holding, keep_held, leave_held, mend_place, put_aside, put_back, set_limit
-- @use task/suspects

-- fits reports whether a task fits into the 4 MiB of a call, beside the tasks given out and the outcomes that came
-- with the request. The first task always fits.
local function fits(task, got)
  local size = #task.spec + (tonumber(task.payload_bytes) or 0)
  if got.bytes > 0 and got.carried + got.bytes + size > 4194304 then
    got.full = true
    return false
  end
  got.bytes = got.bytes + size
  return true
end

local function run(tx, task, ask)
  local line = task.queue_timeout_ms and not is_attempt_limit(task) and task.limit_at or nil
  if line ~= (task.line_at or nil) then
    record.set(tx, task, "line_at", line) -- if its worker has no handler for it, its time in line continues
  end
  task.status, task.worker = "RUNNING", ask.worker
  local first = not task.epoch
  task.epoch = first and incarnation.first_epoch(task) or string.format("%d", task.epoch + 1)
  record.touch(tx, task)
  local instant = task.attempt_timeout_ms and tx.at + task.attempt_timeout_ms
  if task.rich then
    record.set(tx, task, "lost_by", nil)
    record.set(tx, task, "release_reason", nil)
    record.set(tx, task, "held", nil)
    record.set(tx, task, "held_at", nil)
  end
  if task.woken then -- its attempt continues
    instant = tonumber(task.attempt_at)
    record.set(tx, task, "woken", nil)
    record.set(tx, task, "attempt_at", nil)
  else
    task.started_at = tx.now
  end
  if task.limit_at or instant then
    set_limit(tx, task, instant)
  end
  if task.idempotency_scope == "started" and first then
    idempotency.free(tx, task.idempotency_key)
  end
end

-- take claims one task that is in line for a worker. It returns nil if the task is not given out: it has ended, ends
-- now, does not exist, cannot be read, or does not fit into the reply.
--
--   line  as draw takes it   ask  as read_ask returns it   got  what the call gives out so far (claim)
local function take(tx, id, line, ask, got)
  local task = load_task(tx, id)
  if not task or task.status ~= "PENDING" or task.available_at or held_set(task) ~= line.set then
    index.remove(tx, line.key, id) -- the record decides, and the line was wrong
    if task then
      mend_place(tx, task)
    end
    return nil
  elseif task.put_back_now or not fits(task, got) then -- load_task may have ended the attempt of a woken agent
    return nil
  end
  local handed = task.payload_bytes and payload(tx, task)
  if task.payload_bytes and not handed then
    put_aside(tx, id, "its payload is lost")
    index.remove(tx, line.key, id)
    return nil
  end
  if line.set then
    leave_held(tx, line.set, id)
  end
  if task.held and task.lease_losses then -- a suspect whose worker could not run it: it is handed out with the others
    record.set(tx, task, "held", nil)
    record.set(tx, task, "held_at", nil)
    keep_held(tx, task, held_set(task), "front")
    return nil
  end
  if task.lease_losses then
    got.suspects[#got.suspects + 1] = suspects.entry(tx, task)
    got.result.shared[task.queue] = true
  end
  run(tx, task, ask)
  index.remove(tx, line.key, id)
  index.add(tx, tx.key.claims .. ask.worker, string.format("%d", ask.seq), id)
  count.run(tx, task.queue, ask.worker, 1)
  emit(tx, "all", "task_started", task)
  got.tasks[#got.tasks + 1], got.payloads[id] = task, handed
  return task
end

-- parcels formats the tasks that a worker claims. Each has five words: its id, its epoch, a text of four words
-- (limit_at, retries, lease_losses, journal; "-" for none), its spec (store/record.lua), and its payload if the spec
-- does not include it.
local function parcels(got)
  local words, n = {}, 0
  for _, task in ipairs(got.tasks) do
    words[n + 1], words[n + 2] = task.id, task.epoch
    words[n + 3] = task.rich and (task.limit_at or "-") .. " " .. (task.retries or "-") .. " " .. (task.lease_losses or "-") ..
      " " .. (task.journal or "-") or "- " .. (task.retries or "-") .. " - -"
    words[n + 4] = task.spec
    words[n + 5] = got.payloads[task.id] or ""
    n = n + 5
  end
  return words
end

-- draw takes up to `want` tasks from the line of a queue, or from a set of its held tasks, and returns how many. Some tasks in line are late: they are ended and not given out, and draw
-- continues with the next. But a line of late tasks must not hold up the server or the other queues. So in each
-- round it reads from a queue as many tasks as the queue can give, and its share of 100 more.
--
--   line  queue; key; set: the name of the set, if it is one
local function draw(tx, ask, got, line, want)
  local key, free = line.key, free_slots(tx, line.queue)
  local given = math.min(want, free.n, got.left)
  local taken, from = 0, got.from[key] or 0
  local looks, page = math.min(given + got.share, got.looks), given
  while taken < given and looks > 0 and not got.full do
    local ids = try(tx, "ZRANGE", key, from, from + math.min(page, looks) - 1)
    if not ids or #ids == 0 then
      got.empty[line.set or line.queue] = ids ~= nil
      break
    end
    if not got.checked then -- the claims must be readable before anything is decided
      tx.on, got.checked = false, true
      redis.call("ZCARD", tx.key.claims .. ask.worker)
    end
    from, looks, got.looks = from + #ids, looks - #ids, got.looks - #ids
    record.load(tx, ids)
    for _, id in ipairs(ids) do
      tx.on = id
      if got.full or taken == given then
        from = from - 1
      elseif take(tx, id, line, ask, got) then
        taken = taken + 1
      end
    end
    page = taken == 0 and 2 * page or given - taken
  end
  got.from[key], got.left = from, got.left - taken
  use_rate(tx, line.queue, free, taken)
  return taken
end

-- draw_held takes up to `want` held tasks of a queue from these sets, and returns how many.
local function draw_held(tx, ask, got, held, want)
  local taken = 0
  for _, set in ipairs(held.sets or {}) do
    if taken < want and got.left > 0 and not got.empty[set] and not got.full then
      taken = taken + draw(tx, ask, got, {queue = held.queue, key = tx.key.held .. set, set = set}, want - taken)
    end
  end
  return taken
end

-- draw_beside takes up to `want` tasks of a queue that are held beside its line, suspects first, and returns how many.
local function draw_beside(tx, ask, got, queue, want)
  local taken = 0
  if got.few[queue] and got.room > 0 then
    taken = draw_held(tx, ask, got, {queue = queue, sets = got.few[queue]}, math.min(want, got.room))
    got.room = got.room - taken
  end
  return taken + draw_held(tx, ask, got, {queue = queue, sets = got.sets[queue]}, want - taken)
end

-- draw_alone takes one suspect that must run alone. The worker gets nothing else.
--
--   mine  the worker isolates itself (task/suspects.lua)
local function draw_alone(tx, ask, got, mine)
  for _, queue in ipairs(ask.queues) do
    if not got.tasks[1] and draw_held(tx, ask, got, {queue = queue, sets = got.alone[queue]}, 1) > 0 then
      suspects.isolate(tx, ask, got.suspects[#got.suspects], mine)
      got.result.alone, got.left = true, 0
    end
  end
end

-- isolate decides whether a worker takes no tasks now, because it holds a suspect alone or could hold one after its last task, and
-- gives it such a suspect if it holds nothing.
--
--   alone  the field of the worker's record
local function isolate(tx, ask, got, alone)
  if suspects.is_alone(tx, ask.worker, alone) then
    got.result.alone, got.left = true, 0
    return
  elseif not suspects.open(tx, ask, got.alone) then
    if alone == "-" then
      suspects.give_up(tx, ask.worker)
    end
    return
  elseif ask.rests and alone ~= "-" then
    return
  end
  local drains = suspects.company(tx, ask) > 0
  if not suspects.turn(tx, ask.worker, drains) then
    return
  elseif drains then
    suspects.isolate(tx, ask, "-", true)
    got.result.alone, got.left = true, 0
  else
    draw_alone(tx, ask, got, true)
  end
end

-- look_beside decides which held tasks a worker can take, and adds to got: the sets of them (sets), of suspects (few) and of those
-- that run alone (alone), by queue; how many suspects it can take (room), and which it holds (suspects). It returns false if there
-- is nothing beside the lines, as usual.
--
--   about  fields of the worker's record: the third is alone, the fourth is suspects
local function look_beside(tx, ask, got, about)
  got.sets = fitting(tx, ask.worker)
  if not next(got.sets) and not about[3] and not about[4] then
    return false
  end
  got.few, got.alone = suspects.split(got.sets)
  got.room, got.suspects, got.result.shared = 0, {}, {}
  if next(got.few) or about[4] then
    got.room, got.suspects = suspects.room(tx, ask, about[4])
  end
  isolate(tx, ask, got, about[3])
  return true
end

-- holds_more reports whether held tasks are left that the worker could have now.
local function holds_more(tx, ask, got)
  for _, queue in ipairs(ask.queues) do
    for _, set in ipairs(got.sets[queue] or {}) do
      if holding(tx, set).n <= 0 then
        forget_empty(tx, set)
      elseif free_slots(tx, queue).n > 0 then
        return true
      end
    end
  end
  return false
end

-- leave_beside notes what is left beside the lines, and which suspects the worker holds.
--
--   known  the field suspects of its record
local function leave_beside(tx, ask, got, known)
  local result = got.result
  if not got.tasks[1] and got.left > 0 and suspects.company(tx, ask) == 0 then
    draw_alone(tx, ask, got, false)
  end
  result.more = not result.alone and holds_more(tx, ask, got)
  for _, queue in ipairs(ask.queues) do
    local few = suspects.some(tx, got.few, queue)
    result.few = result.few or few
    -- A queue that has used up its rate gets no token now, and is noted.
    local shared = result.shared[queue] or free_slots(tx, queue).n < 1
    result.shared[queue] = shared and (few or suspects.some(tx, got.alone, queue)) or nil
  end
  suspects.keep(tx, ask.worker, got.suspects, known)
end

local most_queues = 256

-- repeated adds the tasks that an earlier request with the same seq claimed, and that the worker still holds.
local function repeated(tx, ask, got)
  local ids = redis.call("ZRANGEBYSCORE", tx.key.claims .. ask.worker, string.format("%d", ask.seq), string.format("%d", ask.seq))
  record.load(tx, ids)
  for _, id in ipairs(ids) do
    tx.on = id
    local task = load_task(tx, id)
    local held = task and task.status == "RUNNING" and task.worker == ask.worker
    if held and task.payload_bytes then
      got.payloads[id] = payload(tx, task)
      if not got.payloads[id] then
        put_aside(tx, id, "its payload is lost")
        held = false
      end
    end
    if held then
      got.tasks[#got.tasks + 1] = task
    end
  end
end

-- narrow reduces a request to the queues that this call reads.
local function narrow(ask)
  local n = #ask.queues
  local first, queues, quotas = ask.seq * most_queues % n, {}, {}
  for i = 1, most_queues do
    local place = (first + i - 1) % n + 1
    queues[i], quotas[i] = ask.queues[place], ask.quotas[place]
  end
  ask.queues, ask.quotas = queues, quotas
end

-- claim gives ready tasks to a worker. The first round takes up to its quota from each queue, in the order of the
-- request. The second round takes from the queues in the same order until the worker has all it asked for. A queue
-- gives no more than its controls allow.
--
--   ask  as read_ask returns it; settle adds carried: the bytes of the outcomes that it reports
--
-- One call gives at most 500 tasks and 4 MiB, and reads at most 256 queues, since Redis does nothing else
-- meanwhile. It gives one task however large that is. For a worker of more queues, later calls read the others.
--
-- Returns the claims, as parcels formats them
local function claim(tx, ask)
  local key = tx.key
  local most = math.min(ask.n, 500)
  local got = {tasks = {}, payloads = {}, bytes = 0, carried = ask.carried or 0, full = false, left = most, from = {}, empty = {}, result = false}
  local about = redis.call("HMGET", key.worker .. ask.worker, "seq", "stop_at", "alone", "suspects")
  local newest = tonumber(about[1] or 0)
  local result = begin_ask(tx, got.empty)
  got.result = result
  index.add(tx, key.workers, string.format("%d", tx.at + ask.lease), ask.worker)
  alarm.note(tx, tx.at + ask.lease)
  if ask.seq <= newest then
    result.repeated, result.alone = true, suspects.is_alone(tx, ask.worker, about[3])
    repeated(tx, ask, got)
    return parcels(got)
  end
  if about[2] then
    most, got.left, result.stopping = 0, 0, true
  end
  if #ask.queues > most_queues then
    narrow(ask)
  end
  got.share = math.ceil(100 / math.max(#ask.queues, 1))
  got.looks = most + 100 + got.share * #ask.queues
  local beside = most > 0 and look_beside(tx, ask, got, about)
  if most == 0 and about[3] then
    result.alone = suspects.is_alone(tx, ask.worker, about[3])
  end
  for round = 1, 2 do
    for i, queue in ipairs(ask.queues) do
      local want = round == 1 and ask.quotas[i] or got.left
      if beside then
        want = want - draw_beside(tx, ask, got, queue, want)
      end
      if got.left > 0 and not got.empty[queue] and not got.full then
        draw(tx, ask, got, {queue = queue, key = key.ready .. queue, set = nil}, want)
      end
    end
  end
  tx.on, result.queues = false, ask.queues
  if beside then
    leave_beside(tx, ask, got, about[4])
    tx.on = false
  end
  if got.tasks[1] then -- a request that got no task can be repeated
    later.before(tx, "HSET", key.worker .. ask.worker, "seq", string.format("%d", ask.seq))
  end
  return parcels(got)
end

-- read_ask reads a worker's request for tasks from argument i on: seq, n, lease in ms, elsewhere, then queue and quota of each
-- queue. It raises if an argument is invalid.
--
--   seq        grows with each request of the worker; an equal seq repeats a request whose reply was lost
--   elsewhere  how many tasks the worker holds in other partitions; -1 - that number: it has just been isolated, and rests
--
-- Returns {worker, seq, n, lease, elsewhere, rests, queues, quotas}
local function read_ask(argv, i, worker)
  local ask = {worker = worker, seq = whole(argv[i]), n = whole(argv[i + 1]), lease = whole(argv[i + 2], 1, 4503599627370496),
    elsewhere = whole((string.gsub(argv[i + 3] or "", "^%-", ""))), rests = string.sub(argv[i + 3] or "", 1, 1) == "-",
    queues = {}, quotas = {}}
  if not ask.seq or not ask.n or not ask.lease or not ask.elsewhere then
    error("argument " .. i .. " and the next three must be whole numbers: seq, how many tasks, ms of lease from 1 on, and how many" ..
      " tasks the worker holds in other partitions", 0)
  elseif ask.rests then
    ask.elsewhere = ask.elsewhere - 1
  end
  if (#argv - i - 3) % 2 ~= 0 then
    error("argument " .. #argv .. " must be followed by a quota: give queue and quota of each queue", 0)
  end
  for j = i + 4, #argv, 2 do
    local _, why = names.queue(argv[j])
    if why then
      error("argument " .. j .. ": a queue " .. why, 0)
    end
    local n = #ask.queues + 1
    ask.queues[n], ask.quotas[n] = argv[j], whole(argv[j + 1])
    if not ask.quotas[n] then
      error("argument " .. (j + 1) .. " must be the quota of " .. argv[j] .. ", a whole number", 0)
    end
  end
  return ask
end

-- return_claim takes a claim from a worker that is gone. The task is a suspect then (task/suspects.lua). The old claim can
-- still settle it until another worker claims it (lost_by names the worker). A lost lease is not a failed
-- attempt, so it has a budget of its own: at the fourth lost lease in a row the task is FAILED, since it was alone with
-- its last two workers. A task that was being cancelled is CANCELLED, since no handler is left to wait for.
--
--   blame  whether this counts as a lost lease; false: the worker said goodbye, or does not know of the claim
local function return_claim(tx, task, blame)
  if task.cancel_at then
    finish(tx, task, cancelled(task.cancel_reason, nil, task.reason))
    return
  elseif not blame then
    emit(tx, "all", "task_released", task)
    put_back(tx, task, tx.at, true)
    return
  end
  local losses = string.format("%d", (task.lease_losses or 0) + 1)
  if tonumber(losses) > 3 then
    finish(tx, task, {status = "FAILED", reason = "lease_lost", error = "worker lost", lease_losses = losses})
    return
  end
  emit(tx, "all", "task_lease_lost", task)
  local worker = task.worker
  record.set(tx, task, "lease_losses", losses)
  put_back(tx, task, tx.at, true)
  record.set(tx, task, "lost_by", worker)
end

-- give_back takes a claim from a worker that is gone, or that does not know of the claim. If the worker does not run
-- the task, the id is removed from the claims of the worker, and a PENDING task gets its place in line again.
--
--   blame  as in return_claim
--
-- Returns whether a claim was returned; and why, if the task was put aside because it has no place
local function give_back(tx, id, worker, blame)
  tx.on = id
  local task, why = load_task(tx, id), nil
  local held = task and task.status == "RUNNING" and task.worker == worker
  if held then
    return_claim(tx, task, blame)
  elseif task then
    why = mend_place(tx, task)
    if not task.status then
      count.again(tx)
    end
  end
  index.remove(tx, tx.key.claims .. worker, id)
  return held, why
end
