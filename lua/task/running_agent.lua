-- running_agent is the agent that a call comes from, and nil if it may not act as it; then the second value
-- is the answer. It must run, and be this worker's by this claim.
--
-- @use task/load_task
-- @use task/refuse
local function running_agent(tx, claim, op)
  local task, why = load_task(tx, claim.id)
  if not task then
    error("BROKEN " .. claim.id .. ": " .. why, 0)
  elseif not task.status then
    return nil, {"MISSING"}
  elseif task.status ~= "RUNNING" or task.epoch ~= claim.epoch or task.worker ~= claim.worker then
    refuse(tx, task, op, claim.epoch, claim.worker)
    return nil, {"LOST", task.status}
  elseif task.cancel_at then
    return nil, {"CANCELLING", task.grace_at}
  end
  return task
end
