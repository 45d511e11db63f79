-- cancel_member cancels a member that its wait no longer waits for. A signal is not cancelled: it can still be sent.
--
--   why      not_needed: the wait is decided; wait_timeout: its limit is over; patience: the member's own
--            limit in the wait is over
--   instant  the instant of the end, if it is in the past; nil: now
--
-- @use task/cancel_task
-- @use task/cancelled
-- @use store/live
-- @use task/load_task
local function cancel_member(tx, id, why, instant)
  local before = tx.on
  tx.on = id -- if deciding raises, the member is at fault and not its agent
  local task = load_task(tx, id)
  if task and live(task) and not (task.role and string.find(id, "%.s%-[^.]*$")) then
    local over = cancelled(why == "not_needed" and "No longer needed" or "Wait timed out")
    over.reason = why == "not_needed" and why or "wait_timeout"
    over.completed_at = instant
    cancel_task(tx, task, over, over.error)
  end
  tx.on = before
end
