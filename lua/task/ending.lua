-- ending returns how a live task that is out of time ends, or nil if the task has time left. It never writes.
-- The earliest instant decides: an ancestor's end, the inherited until, its own deadline, the limit of its line or
-- attempt, the end of its grace, its own limit in a wait, or a timer's own instant. Of equal instants the outermost
-- decides. So the result does not depend on which reaper sweeps, in which order, or how late.
--
-- A task is out of time when the instant is strictly before now: at its deadline a task is still alive, and a
-- timer that is due at its deadline fires. The limit of an attempt that will be retried ends no task
-- (task/load_task.lua).
--
-- @use store/record
-- @use task/ancestor_end
-- @use task/is_attempt_limit
-- @use task/retry_at
-- @use task/cancelled
-- @use task/timed_out
-- @use wait/patience_end

-- earliest returns the instant that decides and its kind: ancestor, workflow, execution, queue, attempt, grace, or
-- patience (its own limit in its owner's wait). They are tested from the outermost to the innermost, and a later one
-- must be strictly earlier to replace the one before.
local function earliest(tx, task)
  local at = tx.at
  local first, ancestor = ancestor_end(tx, task.id)
  local kind = first and "ancestor"
  local bound = tonumber(task["until"] or nil)
  if bound and bound < at and (not first or bound < first) then
    first, kind = bound, "workflow"
  end
  local deadline = tonumber(task.deadline_at or nil)
  if deadline and deadline < at and (not first or deadline < first) then
    first, kind = deadline, "execution"
  end
  local limit = tonumber(task.limit_at or nil)
  if limit and limit < at and (not first or limit < first) then
    if not is_attempt_limit(task) then
      first, kind = limit, "queue"
    elseif not retry_at(task, {class = "timeout", since = limit}) then
      first, kind = limit, "attempt"
    end
  end
  local grace = tonumber(task.grace_at or nil)
  if grace and grace < at and (not first or grace < first) then
    first, kind = grace, "grace"
  end
  local patience = task.owner and patience_end(tx, task)
  if patience and patience < at and (not first or patience < first) then
    first, kind = patience, "patience"
  end
  return first, kind, ancestor
end

local function ending(tx, task)
  local first, kind, ancestor = earliest(tx, task)
  if task.role == "timer" then
    local fires = tonumber(task.available_at)
    if fires <= tx.at and (not first or fires < first or fires == first and kind ~= "ancestor") then
      return {status = "COMPLETED", result = "", completed_at = fires}
    end
  end
  if not first then
    return nil
  elseif task.cancel_at then
    local over = cancelled(task.cancel_reason)
    over.completed_at = first
    return over
  elseif kind == "patience" then
    return {status = "CANCELLED", reason = "wait_timeout", error = "Wait timed out", completed_at = first}
  elseif kind == "ancestor" then
    local above = record.get(tx, ancestor)
    if not above or not above.timed_out then
      return {status = "CANCELLED", reason = "owner_ended", error = "Owner ended", completed_at = first}
    end
    kind = "workflow"
  end
  return timed_out(task, kind, first)
end
