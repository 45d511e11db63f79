-- cancel: somebody wants tasks to end.
--
-- KEYS[1]  root of the partition
-- ARGV[1]  call: kept over repeats of this call
-- ARGV[2]  reason, opaque; "" for none
-- ARGV[3…] ids
--
-- Returns  for each id one of
--   {"CANCELLED"}                it was live, and is cancelled; also when this call had done it before
--   {"CANCELLING", instant}      it will be, at that instant or as soon as its handler stops
--   {"ALREADY", status, note}    it had ended: its result if COMPLETED, its error if not
--   {"MISSING"}                  no such task
--   {"BROKEN", why}              its record cannot be worked with
-- Ends     CANCELLED
-- Flags    allow-oom        a full Redis must still drain
--
-- @include keys
-- @include now
-- @include overdue
-- @include live
-- @include cancelled
-- @include finish
-- @include arm
-- @include emit
-- @include refuse
-- @include guard
-- @include flush
-- @include complete

local k, at = keys(KEYS[1]), now()
local call, reason = ARGV[1], ARGV[2]

-- spare gives a running handler its grace: the task is as good as cancelled, and ends
-- when its handler stops, at the end of the grace, or with its own time.
local function spare(task)
  local ends = at + tonumber(task.cancel_grace_ms)
  local final = tonumber(task["until"] or task.deadline_at)
  task.cancel_at, task.grace_at = at, string.format("%d", final and math.min(final, ends) or ends)
  redis.call("HSET", k.task .. task.id, "cancel_at", at, "grace_at", task.grace_at, "cancel_reason", reason, "cancelled_by", call)
  arm(k, task)
  redis.call("PUBLISH", k.stop .. task.worker, task.id .. " " .. task.epoch .. " cancelling")
  emit(k, "all", "task_cancelling", task, at, "grace_at", task.grace_at)
end

local function end_it(id)
  local task = overdue(k, id, at)
  if not task.status then
    return {"MISSING"}
  end
  if live(task) then
    if task.status == "RUNNING" and task.cancel_grace_ms and not task.cancel_at then
      spare(task)
    end
    if task.cancel_at then
      return {"CANCELLING", task.grace_at}
    end
    finish(k, task, cancelled(reason, {"call", call}), at)
    return {"CANCELLED"}
  end
  -- Its end after a grace may be another call's, that of the report of its handler.
  if task.status == "CANCELLED" and (task.call == call or task.cancelled_by == call) then
    return {"CANCELLED"}
  end
  refuse(k, task, at, "cancel", "", "")
  return {"ALREADY", task.status, task.result or task.error or ""}
end

local answers = {}
for i = 3, #ARGV do
  local answer, why = guard(k, ARGV[i], at, end_it, ARGV[i])
  answers[#answers + 1] = answer or {"BROKEN", why}
end
complete(flush(k, at))
return answers
