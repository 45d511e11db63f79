-- cancel_task cancels a live task: it ends, or its handler gets the grace that the task was given. With a
-- grace it ends when its handler stops, at the end of the grace, or with its own time.
--
--   ending  of the task, if it ends now (task/cancelled.lua); its error is the reason that the record keeps
--   call    that cancels it, nil if none does
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
