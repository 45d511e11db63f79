-- refuse tells that a call came to nothing because of what the task is by now.
--
--   op      complete, fail, release, resolve, reject, cancel, suspend, remember, signal or enqueue (of a child)
--   epoch   that the caller gave, and worker, its name; "" for a caller that is none
--
-- @use store/emit
-- @use store/escape
-- @use task/live
local function refuse(tx, task, op, epoch, worker)
  if tx.root.level ~= "all" then
    return
  end
  local reason = "not_held"
  if not live(task) then
    reason = task.timed_out and "late" or task.status == "CANCELLED" and "cancelled" or "ended"
  elseif epoch ~= "" and epoch ~= (task.epoch or "0") then
    reason = "stale"
  end
  local caller = {id = task.id, kind = task.kind, queue = task.queue, created_at = task.created_at, started_at = task.started_at,
    retries = task.retries, epoch = epoch ~= "" and escape(epoch) or nil, worker = worker ~= "" and escape(worker) or nil}
  emit(tx, "all", "rejected", caller, "op=" .. op .. " reason=" .. reason .. " status=" .. task.status ..
    " task_epoch=" .. (task.epoch or "0") .. " task_worker=" .. (task.worker or ""))
end
