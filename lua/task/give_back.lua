-- give_back takes a claim from a worker that is gone, or does not know of it. A task that the worker does not run
-- leaves its claims, and must stand elsewhere.
--
--   blame  as in task/return_claim.lua
--
-- Returns whether a claim was returned; and why, if the task was put aside since it stands nowhere
--
-- @use store/index
-- @use task/load_task
-- @use task/mend_place
-- @use task/return_claim
local function give_back(tx, id, worker, blame)
  tx.on = id
  local task, why = load_task(tx, id), nil
  local held = task and task.status == "RUNNING" and task.worker == worker
  if held then
    return_claim(tx, task, blame)
  elseif task then
    why = mend_place(tx, task)
    tx.recount = tx.recount or not task.status
  end
  index.remove(tx, tx.key.claims .. worker, id)
  return held, why
end
