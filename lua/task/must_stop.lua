-- must_stop returns why an attempt must stop, or nil if it can continue. Progress is stored only if it can continue.
--
-- @use store/index
-- @use store/record
-- @use store/live
-- @use task/load_task

-- keep stores the progress of an attempt. If the attempt repeats its latest progress, nothing changes: progress_at is
-- when that progress was first reported.
local function keep(tx, task, progress)
  if task.progress ~= progress or (tonumber(task.progress_at or nil) or 0) < tonumber(task.started_at) then
    record.set(tx, task, "progress", progress)
    record.set(tx, task, "progress_at", tx.now)
  end
end

local function must_stop(tx, id, epoch, progress, worker)
  local task = load_task(tx, id)
  if not task then
    index.remove(tx, tx.key.claims .. worker, id)
    return "gone"
  elseif not task.status then
    return "gone"
  elseif not live(task) then
    return task.timed_out and "timeout" or string.lower(task.status)
  elseif task.epoch ~= epoch or task.status == "RUNNING" and task.worker ~= worker then
    return "lost"
  elseif task.status == "PENDING" and task.lost_by ~= worker then
    return "released"
  elseif task.cancel_at then
    return "cancelling"
  elseif progress ~= "" and task.status == "RUNNING" then
    keep(tx, task, progress)
  end
end
