-- lose cancels a member of a wait that does not wait for it any more. A signal is left
-- alone: what it says may still come.
--
--   why      not_needed: the wait is decided; wait_timeout: its limit is over; patience: its
--            own limit in the wait is
--   instant  at which that was, if it decides; nil: now
--
-- @include overdue
-- @include live
-- @include cancelled
-- @include revoke
local function lose(k, id, why, at, instant)
  local task = overdue(k, id, at)
  if live(task) and not (task.role and string.find(id, "%.s%-[^.]*$")) then
    local over = cancelled(why == "not_needed" and "No longer needed" or "Wait timed out")
    over.reason = why == "not_needed" and why or "wait_timeout"
    over.completed_at = instant
    revoke(k, task, over, over.error, "", at)
  end
end
