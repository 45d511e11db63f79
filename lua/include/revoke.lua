-- revoke is what cancelling a live task comes to: it ends, or its handler gets the grace
-- that the task was given. It is as good as cancelled then, and ends when its handler
-- stops, at the end of the grace, or with its own time.
--
--   ending  of the task, if it ends now (cancelled.lua)
--   reason  why it is cancelled, for its record if it does not
--   call    that cancels it; "" if none does
--
-- @include finish
-- @include arm
-- @include emit
local function revoke(k, task, ending, reason, call, at)
  if task.status ~= "RUNNING" or not task.cancel_grace_ms then
    finish(k, task, ending, at)
  elseif not task.cancel_at then
    local ends = at + tonumber(task.cancel_grace_ms)
    local final = tonumber(task["until"] or task.deadline_at)
    task.cancel_at, task.grace_at = at, string.format("%d", final and math.min(final, ends) or ends)
    redis.call("HSET", k.task .. task.id, "cancel_at", at, "grace_at", task.grace_at, "cancel_reason", reason, "cancelled_by", call)
    arm(k, task)
    redis.call("PUBLISH", k.stop .. task.worker, task.id .. " " .. task.epoch .. " cancelling")
    emit(k, "all", "task_cancelling", task, at, "grace_at", task.grace_at)
  end
end
