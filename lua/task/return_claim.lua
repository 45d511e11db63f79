-- return_claim takes a claim from a worker that is gone. The task is in line again, at the front. The old claim can
-- still settle it until another worker claims it (lost_by names the worker). A lost lease is not a failed
-- attempt, so it has a budget of its own: at the fourth lost lease the task is FAILED, since it probably kills its
-- workers. A task that was being cancelled is CANCELLED, since no handler is left to wait for.
--
--   blame  whether this counts as a lost lease; false: the worker said goodbye, or does not know of the claim
--
-- @use store/emit
-- @use store/record
-- @use task/cancelled
-- @use task/finish
-- @use task/put_back
local function return_claim(tx, task, blame)
  if task.cancel_at then
    finish(tx, task, cancelled(task.cancel_reason))
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
  put_back(tx, task, tx.at, true)
  record.set(tx, task, "lost_by", worker)
  record.set(tx, task, "lease_losses", losses)
end
