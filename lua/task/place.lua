-- Where a live task waits for something: in a line, on a clock, or with a worker.
--
-- @use queue/queue: count, next_place, place, wake
-- @use store/events: emit, escape
-- @use store/index
-- @use store/messages: alarm
-- @use store/record
-- @use store/state: final, held_set, is_attempt_limit, nearest
-- @use store/try: attempt
-- @use store/tx: memo
-- @use wait/journal
-- @use wait/wait: forget_wait, stop_waiting

-- schedule_limit puts a live task on the clock of limits at its nearest instant, or removes it from the clock.
local function schedule_limit(tx, task)
  local first = nearest(task)
  if first then
    index.add(tx, tx.key.limits, string.format("%d", first), task.id)
    alarm.note(tx, first)
  else
    index.remove(tx, tx.key.limits, task.id)
  end
end

-- set_limit sets limit_at: the instant at which a task has been in line too long, or its attempt takes too long.
-- A limit at or after the end of the task is not kept.
--
--   instant  a number, or nil for no limit
local function set_limit(tx, task, instant)
  local last = final(task)
  if instant and not (last and last <= instant) then
    record.set(tx, task, "limit_at", string.format("%d", instant))
    schedule_limit(tx, task)
  elseif task.limit_at then
    record.set(tx, task, "limit_at", nil)
    schedule_limit(tx, task)
  end
end

-- aside returns what a call has put aside:
--
--   poison  why deciding on a task raised, by id
--   unit    the ids that this unit of work has put aside
--   before  those of earlier units
local function aside(tx)
  local mine = tx.aside
  if not mine then
    mine = {poison = {}, unit = {}, before = {}}
    tx.aside = mine
  end
  return mine
end

-- put_aside removes an id whose record cannot be used from every clock, so that it stops no other task, and keeps it
-- in `broken` for repair. A call reports it once, even if it meets the id again on further clocks.
--
--   clocks  the clocks to remove it from; nil: all of them. If given, the record still says whether the task runs
--
-- Running tasks are counted again when an id enters `broken`, and not while the id stays there. The operator who
-- repairs the record removes its id.
local function put_aside(tx, id, why, clocks)
  local key = tx.key
  for _, clock in ipairs(clocks or {key.deadlines, key.limits, key.delayed, key.waits, key.draining, key.retained}) do
    index.remove(tx, clock, id)
  end
  local known = aside(tx)
  if known.unit[id] or known.before[id] then
    return
  end
  known.unit[id] = true
  if not clocks and not (tx.queues and tx.queues.recount) and type(attempt("ZSCORE", key.broken, id)) ~= "string" then
    count.again(tx)
  end
  index.add(tx, key.broken, tx.now, id)
  emit(tx, "terminal", "task_broken", {id = escape(id)}, "error=" .. escape(why))
end

-- line_limit returns the instant at which a task has been in line too long, or nil. It counts from the instant at which the
-- task was ready, and not from the call that noticed: a late reaper gives no task more time.
local function line_limit(task, ready)
  return task.queue_timeout_ms and ready + task.queue_timeout_ms or nil
end

-- line_end returns the limit of the line of a task that its worker cannot run, or nil. Its time in line continues.
local function line_end(task)
  return tonumber(task.line_at or task.status == "PENDING" and not is_attempt_limit(task) and task.limit_at or nil)
end

-- holding returns how many tasks a set of held tasks has after this unit (n), and which of them this unit has put there (new).
local function holding(tx, set)
  local known = memo(tx, "holding")
  if not known[set] then
    local n = attempt("ZCARD", tx.key.held .. set)
    known[set] = {n = type(n) == "number" and n or 0, new = {}}
  end
  return known[set]
end

-- keep_held puts a held task into its set, and the set on the list of sets.
--
--   how  as next_place takes it, or nil
local function keep_held(tx, task, set, how)
  local of = holding(tx, set)
  of.n, of.new[task.id] = of.n + 1, true
  index.add(tx, tx.key.held .. set, next_place(tx, task.priority, how), task.id)
  index.add(tx, tx.key.holds, "0", set)
end

-- forget_empty takes a set of held tasks that has none after this unit off the list.
local function forget_empty(tx, set)
  if holding(tx, set).n <= 0 then
    index.remove(tx, tx.key.holds, set)
  end
end

-- leave_held takes a held task out of its set.
local function leave_held(tx, set, id)
  local key, of = tx.key.held .. set, holding(tx, set)
  if of.new[id] or not index.removed(tx, key, id) and type(attempt("ZSCORE", key, id)) == "string" then
    of.n, of.new[id] = of.n - 1, nil
  end
  index.remove(tx, key, id)
  forget_empty(tx, set)
end

-- line_up puts a PENDING task in line, or among the suspects. The attempt of an agent that was woken continues, with its
-- limit (attempt_at).
--
--   front    the task was given back: it gets a place at the front of the line
--   instant  when it has been in line too long, or nil
local function line_up(tx, task, front, instant)
  local set, how = held_set(task), task.woken and "woken" or front and "front"
  if set then
    keep_held(tx, task, set, how)
    wake.note(tx, task.queue)
  else
    place(tx, task.id, task.queue, task.priority, how)
  end
  local attempt_end = tonumber(task.attempt_at)
  if attempt_end and not (instant and instant < attempt_end) then
    instant = attempt_end
  end
  set_limit(tx, task, instant)
end

-- mend_place makes sure that a PENDING task is in its line, held, or on the clock of delayed tasks. A caller that removes
-- a task from a place where it does not belong must call mend_place: the task could be in no other place, and no call
-- would find it.
--
-- A plain task in line has no state. If a task is in no line and has no state, its state is lost: how often it ran
-- and which children it has is unknown. So it is put aside, and mend_place returns why. Any other task gets its place.
local function mend_place(tx, task)
  if task.status ~= "PENDING" or task.role or task.put_back_now then
    return nil
  elseif task.available_at then
    index.add(tx, tx.key.delayed, task.available_at, task.id)
    return nil
  end
  local set = held_set(task)
  local line = set and tx.key.held .. set or tx.key.ready .. task.queue
  if type(attempt("ZSCORE", line, task.id)) == "string" then
    return nil
  elseif set then
    keep_held(tx, task, set)
    return nil
  elseif attempt("EXISTS", tx.key.state .. task.id) == 1 then
    line_up(tx, task, false, tonumber(task.limit_at) or line_limit(task, tx.at))
    return nil
  end
  local why = "its state is lost: it is PENDING, but neither in line nor delayed"
  put_aside(tx, task.id, why)
  return why
end

-- leave removes a live task from where its status has put it: its line, the held or the delayed tasks, its worker's claims,
-- or its wait. A promise is in none of them.
local function leave(tx, task)
  local key = tx.key
  if task.status == "RUNNING" then
    index.remove(tx, key.claims .. task.worker, task.id)
    count.run(tx, task.queue, task.worker, -1)
  elseif task.status == "WAITING" then
    stop_waiting(tx, task)
  elseif task.available_at then
    index.remove(tx, key.delayed, task.id)
  elseif held_set(task) then
    leave_held(tx, held_set(task), task.id)
  elseif not task.role then
    index.remove(tx, key.ready .. task.queue, task.id)
  end
  if task.waiting then
    forget_wait(tx, task)
  end
end

-- end_attempt makes a task whose attempt is over PENDING. The caller gives it a place.
--
-- put_back_now tells later code of the same unit that the task was put back. If an agent was waiting, its next attempt
-- can come to the same wait again. Then the limit of the wait and the limits of its members must be the same: the
-- journal keeps to which wait they belong.
local function end_attempt(tx, task)
  if task.waiting then
    journal.keep_limit(tx, task)
  end
  leave(tx, task)
  for _, name in ipairs({"lost_by", "attempt_at", "line_at", "passed_on", "woken", "held", "held_at"}) do
    record.set(tx, task, name, nil)
  end
  task.worker, task.status, task.put_back_now = false, "PENDING", true
  record.touch(tx, task)
end

-- put_back makes a task whose attempt is over PENDING again: in line, or delayed.
--
--   start  the instant from which on it can be claimed; at or before now: at once. The limit of the line counts from it
--   front  the attempt was given back: the task gets a place at the front of the line, and stays a suspect if it is one
--   unfit  its worker has no handler for its kind. Its time in line continues (line_at), and it is delayed: 10 ms, twice as
--          long each further time in a row (passed_on), until start or for 1 s at most
local function put_back(tx, task, start, front, unfit)
  local limit, passed = unfit and line_end(task), tonumber(task.passed_on or 0)
  if unfit then
    start = tx.at + math.min(start > tx.at and start - tx.at or 1000, 10 * 2 ^ passed)
  end
  end_attempt(tx, task)
  if not front then
    record.set(tx, task, "lease_losses", nil)
  end
  if unfit then
    record.set(tx, task, "passed_on", string.format("%d", passed + 1))
  end
  limit = limit or line_limit(task, start)
  if start > tx.at then
    record.set(tx, task, "available_at", string.format("%d", start))
    index.add(tx, tx.key.delayed, task.available_at, task.id)
    alarm.note(tx, start)
    set_limit(tx, task, limit)
  else
    record.set(tx, task, "ready_at", string.format("%d", start))
    line_up(tx, task, front, limit)
  end
end
