-- What workers report of their attempts, and whether an attempt can continue.
--
-- @use check/result_type
-- @use check/values: number, whole
-- @use store/events: emit
-- @use store/figures: tally
-- @use store/index
-- @use store/record
-- @use store/state: final, live
-- @use store/tx: memo
-- @use task/ending: cancelled, timed_out
-- @use task/finish: fail_attempt, finish, load_task
-- @use task/hold
-- @use task/place: put_back
-- @use task/plan: refuse

local classes = {error = true, failed = true, timeout = true, deadline = true}
local unfit = {no_handler = "unhandled", diverged = "diverged"} -- why a release holds a task, by its class
local verdicts = {[""] = true, retry = true, fail = true}

-- check_outcome returns the field of an outcome that is wrong, and why; nil if the outcome is well formed.
local function check_outcome(o)
  if o.delay ~= "" and not whole(o.delay, 0, 4503599627370496) then
    return "delay", "must be a whole number of ms, or empty"
  elseif o.verb == "fail" and not classes[o.class] then
    return "class", "must be error, failed, timeout or deadline"
  elseif o.code ~= "" and (not string.find(o.code, "^-?%d+$") or #o.code > 20) then
    return "code", "must be a whole number, or empty"
  elseif not verdicts[o.verdict] and (#o.verdict > 1024 or not string.find(o.verdict, "^fail: [^\n]+$")) then
    return "verdict", "must be empty, retry, fail, or fail: with a reason on one line of up to 1024 bytes"
  end
end

local verbs = {complete = 4, fail = 8, release = 8}

-- read_outcomes reads the outcomes of a report from argument i on: their number, then for each
--
--   id, epoch  the claim, as fetch returned it
--   verb       complete, fail or release
--   note       the result of complete, the error of fail, or why release gives it back (up to 1024 bytes of it are kept), opaque
--
-- and after these four, of fail and release alone:
--
--   class      of fail: error, failed (do not retry), timeout (the attempt's limit) or deadline (its worker
--              stopped it in the grace before the task's own deadline)
--              of release: no_handler if the worker cannot run its kind, diverged if its program cannot replay the
--              agent. The task is held (task/hold.lua), and its time in line continues. If another live worker may be
--              able to run it, it goes back in line instead: in 10 ms, twice as long each further time in a row, and at
--              most what is given (1 s)
--   code       of fail: exit code, or ""
--   delay      ms before the task can be fetched again; "": the task's back-off
--   verdict    of the task's retry expression: "retry" or "fail"; "fail: " and why it could not be
--              evaluated; "" if the task has none
--
-- Returns the outcomes, and the position of the next argument. It raises if the arguments are not such a list.
local function read_outcomes(argv, i)
  local n = number(argv, i, 4, "outcomes")
  if n > 500 then
    error("argument " .. i .. " must be the number of outcomes, at most 500", 0)
  end
  local outcomes, next = {}, i + 1
  for j = 1, n do
    local o = {id = argv[next], epoch = argv[next + 1], verb = argv[next + 2], note = argv[next + 3]}
    local size = verbs[o.verb]
    if not size or next + size - 1 > #argv then -- the position of the next outcome is unknown
      error("argument " .. next .. " must begin an outcome: id, epoch, complete and result; or id, epoch, fail or release," ..
        " note, class, code, delay and verdict", 0)
    end
    if size == 8 then
      o.class, o.code, o.delay, o.verdict = argv[next + 4], argv[next + 5], argv[next + 6], argv[next + 7]
      o.field, o.why = check_outcome(o)
    end
    outcomes[j], next = o, next + size
  end
  return outcomes, next
end

-- note_late counts an outcome that came after its task had timed out. The record keeps the last call that was late, so
-- that a repeat of this call does not count again.
local function note_late(tx, task, call)
  if tx.root.figures and task.timed_out and task.late_by ~= call then
    record.set(tx, task, "late_by", call)
    tally.add(tx, task, " late")
  end
end

-- holds reports whether a claim can still settle its task. A worker that lost its lease can settle until
-- another worker claims the task.
--
-- If Redis never lost writes, the epoch would be enough. A failover can lose a claim, and the next claim
-- then gets the same epoch; so the worker's name is compared too.
local function holds(task, epoch, worker)
  return task.epoch == epoch and
    (task.status == "RUNNING" and task.worker == worker or task.status == "PENDING" and task.lost_by == worker)
end

-- accepted_before returns the verdict of a report that is a repeat, or nil. If the report put the task back in line, the
-- task may since have been claimed again, and may even have ended. So the record keeps both the report that put it back
-- last, and the call that ended it.
--
-- A report is of one claim, since two workers can use the same name for a call.
--
--   mark  epoch and call of the report
local function accepted_before(task, o, worker, call, mark)
  if task.requeued_by == mark then
    return "PENDING"
  elseif task.call == call and task.epoch == o.epoch and task.worker == worker then
    return task.status
  end
end

local apply = {}

function apply.complete(tx, task, o, call)
  finish(tx, task, {status = "COMPLETED", result = o.note, by_worker = true, call = call})
end

-- stopped ends a task whose handler stopped because the time of the task is nearly up.
local function stopped(tx, task, call)
  local over = timed_out(task, task["until"] and "workflow" or "execution", tx.at)
  over.by_worker, over.call = true, call
  finish(tx, task, over)
end

function apply.fail(tx, task, o, call)
  local class = o.class
  if class == "deadline" then
    if final(task) then
      return stopped(tx, task, call)
    end
    class = "error" -- the task has no deadline
  end
  fail_attempt(tx, task, {class = class, since = tx.at, error = o.note, code = o.code, delay = tonumber(o.delay),
    verdict = o.verdict, call = call})
end

function apply.release(tx, task, o)
  local why, start = unfit[o.class], tx.at + (tonumber(o.delay) or 0)
  if why then
    hold(tx, task, why, task.worker, start)
  else
    emit(tx, "all", "task_released", task)
    put_back(tx, task, start, true)
  end
  if o.note ~= "" then
    record.set(tx, task, "release_reason", string.sub(o.note, 1, 1024))
  end
end

-- report applies one outcome of an attempt to its task, and returns the verdict (call/settle.lua). One call reports once
-- about a task: task.reported tells later outcomes of the same call that they are no repeats.
--
--   o  an outcome, as read_outcomes returns it
local function report(tx, o, worker, call)
  if o.field then
    return {"INVALID", o.field, o.why}
  end
  local task, why = load_task(tx, o.id)
  if not task then
    index.remove(tx, tx.key.claims .. worker, o.id) -- a damaged record must not stay with its worker
    return {"BROKEN", why}
  elseif not task.status then
    return {"MISSING"}
  end

  local mark = o.epoch .. " " .. call -- a repeat of this report has the same
  local before = not task.reported and accepted_before(task, o, worker, call, mark)
  if before then
    task.reported = true
    return before
  elseif not holds(task, o.epoch, worker) then
    refuse(tx, task, o.verb, o.epoch, worker)
    note_late(tx, task, call)
    return {"LOST", task.status}
  end
  if o.verb == "complete" and (task.result_type or task.node) and not task.cancel_at then
    why = result_type.refuse(memo(tx, "result types"), result_type.of(task), o.note)
    if why then
      return {"INVALID", "result", why}
    end
  end
  task.reported = true
  task.worker = worker -- named in the event and the record of the end, even if its lease was lost
  if task.cancel_at then -- it ends as cancelled, whatever its handler reports
    local over = cancelled(task.cancel_reason, call, task.reason)
    over.by_worker = true
    finish(tx, task, over)
  else
    apply[o.verb](tx, task, o, call)
  end
  if task.status == "PENDING" then
    record.set(tx, task, "requeued_by", mark)
  end
  return task.status
end

-- keep stores the progress of an attempt. If the attempt repeats its latest progress, nothing changes: progress_at is
-- when that progress was first reported.
local function keep(tx, task, progress)
  if task.progress ~= progress or (tonumber(task.progress_at) or 0) < tonumber(task.started_at) then
    record.set(tx, task, "progress", progress)
    record.set(tx, task, "progress_at", tx.now)
  end
end

-- must_stop returns why an attempt must stop, or nil if it can continue. Progress is stored only if it can continue.
local function must_stop(tx, id, epoch, progress, worker)
  local task = load_task(tx, id)
  if not task then
    index.remove(tx, tx.key.claims .. worker, id)
    return "gone"
  elseif not task.status then
    return "gone"
  elseif not live(task) then
    return task.timed_out and "timeout" or string.lower(task.status)
  elseif task.epoch ~= epoch or task.status == "RUNNING" and task.worker ~= worker then
    return "lost"
  elseif task.status == "PENDING" and task.lost_by ~= worker then
    return "released"
  elseif task.cancel_at then
    return "cancelling"
  elseif progress ~= "" and task.status == "RUNNING" then
    keep(tx, task, progress)
  end
end

-- running_agent returns the agent that a call acts for. The agent must be RUNNING by this claim of this worker, and not
-- be cancelled; otherwise running_agent returns nil and an answer. A record that cannot be used is put aside; the
-- call raises the answer once it has committed.
local function running_agent(tx, claim, op)
  tx.on = claim.id
  local task, why = load_task(tx, claim.id)
  tx.on = false
  if not task then
    index.remove(tx, tx.key.claims .. claim.worker, claim.id) -- a damaged record must not stay with its worker
    return nil, {"BROKEN", why}
  elseif not task.status then
    return nil, {"MISSING"}
  elseif task.status ~= "RUNNING" or task.epoch ~= claim.epoch or task.worker ~= claim.worker then
    refuse(tx, task, op, claim.epoch, claim.worker)
    return nil, {"LOST", task.status}
  elseif task.cancel_at then
    return nil, {"CANCELLING", task.grace_at}
  end
  return task
end
