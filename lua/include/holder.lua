-- holder is the agent that a call comes from, and nil if it may not act as it; then the
-- second value is the answer. It must run, and be this worker's by this claim.
--
-- @include overdue
-- @include refuse
local function holder(k, id, epoch, worker, op, at)
  local task = overdue(k, id, at)
  if not task.status then
    return nil, {"MISSING"}
  elseif task.status ~= "RUNNING" or task.epoch ~= epoch or task.worker ~= worker then
    refuse(k, task, at, op, epoch, worker)
    return nil, {"LOST", task.status}
  elseif task.cancel_at then
    return nil, {"CANCELLING", task.grace_at}
  end
  return task
end
