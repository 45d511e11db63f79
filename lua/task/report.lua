-- report applies one outcome of an attempt to its task, and returns the verdict (call/settle.lua). One call reports once
-- about a task: task.reported tells later outcomes of the same call that they are no repeats.
--
--   o  task/read_outcomes.lua
--
-- @use store/emit
-- @use store/index
-- @use store/record
-- @use store/tally
-- @use task/cancelled
-- @use task/fail_attempt
-- @use task/final
-- @use task/finish
-- @use task/load_task
-- @use task/put_back
-- @use task/refuse
-- @use task/timed_out

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
  emit(tx, "all", "task_released", task)
  put_back(tx, task, tx.at + (tonumber(o.delay) or 0), true, o.class == "no_handler")
  if o.note ~= "" then
    record.set(tx, task, "release_reason", string.sub(o.note, 1, 1024))
  end
end

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
  task.reported = true
  task.worker = worker -- named in the event and the record of the end, even if its lease was lost
  if task.cancel_at then -- it ends as cancelled, whatever its handler reports
    local over = cancelled(task.cancel_reason, call)
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
