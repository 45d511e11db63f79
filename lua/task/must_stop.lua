-- must_stop says why an attempt must stop, nil if it may go on: only then is its progress the task's.
--
-- @use store/index
-- @use store/record
-- @use task/live
-- @use task/load_task

-- keep writes down how far an attempt is. A repeat changes nothing, so that progress_at is when this was
-- first heard of this attempt.
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
