-- give_back takes a claim from a worker that is gone. The task stands in line
-- again, at the front; its old claim may still settle until somebody took it
-- (lost_by says whose it was). A lease is recovery and not a verdict, so it has
-- a budget of its own: more than 3 lost leases, and the task is what kills them.
-- One that was being cancelled is, now that nobody is left to be graceful to.
--
--   blame  whether this counts as a lost lease, or the worker said goodbye
--
-- @include cancelled
-- @include finish
-- @include requeue
-- @include emit
local function give_back(k, task, at, blame)
  if task.cancel_at then
    finish(k, task, cancelled(task.cancel_reason), at)
    return
  end
  if not blame then
    emit(k, "all", "task_released", task, at)
    requeue(k, task, at, at, true, {})
    return
  end
  local losses = tonumber(task.lease_losses or 0) + 1
  if losses > 3 then
    finish(k, task, {status = "FAILED", reason = "lease_lost", error = "worker lost",
      fields = {"lease_losses", losses}}, at)
    return
  end
  emit(k, "all", "task_lease_lost", task, at)
  requeue(k, task, at, at, true, {"lost_by", task.worker, "lease_losses", losses})
end
