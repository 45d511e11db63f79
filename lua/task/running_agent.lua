-- running_agent is the agent that a call comes from, and nil if it may not act as it; then the second value
-- is the answer. It must run, and be this worker's by this claim. A record that cannot be worked with is put
-- aside; the call raises the answer once it has committed.
--
-- @use store/index
-- @use task/load_task
-- @use task/refuse
local function running_agent(tx, claim, op)
  tx.on = claim.id
  local task, why = load_task(tx, claim.id)
  tx.on = false
  if not task then
    index.remove(tx, tx.key.claims .. claim.worker, claim.id) -- a damaged record must not stay with its worker
    return nil, {"BROKEN", why}
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
