-- cancel_task cancels a live task. If the task runs and has a grace, its worker is notified, and it ends when its
-- handler stops, at the end of the grace, or when its time is up. Every other task ends at once.
--
--   ending  the end of the task, if it ends now (task/cancelled.lua)
--   reason  the reason that the record keeps during a grace, cut to 4,096 bytes
--   call    the call that cancels the task, or nil
--
-- @use store/emit
-- @use store/publish
-- @use store/record
-- @use task/final
-- @use task/finish
-- @use task/schedule_limit
local function cancel_task(tx, task, ending, reason, call)
  if task.status ~= "RUNNING" or not task.cancel_grace_ms then
    finish(tx, task, ending)
  elseif not task.cancel_at then
    local ends, last = tx.at + tonumber(task.cancel_grace_ms), final(task)
    record.set(tx, task, "cancel_at", tx.now)
    record.set(tx, task, "grace_at", string.format("%d", last and math.min(last, ends) or ends))
    record.set(tx, task, "cancel_reason", string.sub(reason, 1, 4096))
    record.set(tx, task, "cancelled_by", call)
    schedule_limit(tx, task)
    publish.stop(tx, task, "cancelling")
    emit(tx, "all", "task_cancelling", task, "grace_at=" .. task.grace_at)
  end
end
