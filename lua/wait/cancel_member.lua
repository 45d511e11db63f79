-- cancel_member cancels a member of a wait that does not wait for it any more. A signal is left alone: what
-- it says may still come.
--
--   why      not_needed: the wait is decided; wait_timeout: its limit is over; patience: the member's own
--            limit in the wait is
--   instant  at which that was, if it decides; nil: now
--
-- @use task/cancel_task
-- @use task/cancelled
-- @use task/live
-- @use task/load_task
local function cancel_member(tx, id, why, instant)
  local before = tx.on
  tx.on = id -- what is wrong with a member is no fault of its agent
  local task = load_task(tx, id)
  if task and live(task) and not (task.role and string.find(id, "%.s%-[^.]*$")) then
    local over = cancelled(why == "not_needed" and "No longer needed" or "Wait timed out")
    over.reason = why == "not_needed" and why or "wait_timeout"
    over.completed_at = instant
    cancel_task(tx, task, over, over.error)
  end
  tx.on = before
end
