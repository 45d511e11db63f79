-- give_back takes a claim from a worker that is gone, or that does not know of the claim. If the worker does not run
-- the task, the id is removed from the claims of the worker, and a PENDING task gets its place in line again.
--
--   blame  as in task/return_claim.lua
--
-- Returns whether a claim was returned; and why, if the task was put aside because it has no place
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
