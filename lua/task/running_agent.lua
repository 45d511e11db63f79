-- running_agent returns the agent that a call acts for. The agent must be RUNNING by this claim of this worker, and not
-- be cancelled; otherwise running_agent returns nil and an answer. A record that cannot be used is put aside; the
-- call raises the answer once it has committed.
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
