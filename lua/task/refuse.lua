-- refuse records an event: a call changed nothing because of the state of its task.
--
--   op      complete, fail, release, resolve, reject, cancel, suspend, remember, signal or enqueue (of a child)
--   epoch, worker   of the caller; "" if it has none
--
-- @use store/emit
-- @use store/escape
-- @use store/live
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
    retries = task.retries, node = task.node, epoch = epoch ~= "" and escape(epoch) or nil, worker = worker ~= "" and escape(worker) or nil}
  emit(tx, "all", "rejected", caller, "op=" .. op .. " reason=" .. reason .. " status=" .. task.status ..
    " task_epoch=" .. (task.epoch or "0") .. " task_worker=" .. (task.worker or ""))
end
