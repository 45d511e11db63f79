-- listed_in returns the index in which the call list lists a task. A task can be in several indexes, and is listed in
-- one of them. It returns nil for a task that is in no index.
--
-- @use store/live
local function listed_in(tx, task)
  local status = task.status
  if status == "RUNNING" then
    return "claims"
  elseif not live(task) then
    return status == "COMPLETED" and "retained" or "dead"
  elseif status == "PENDING" and task.available_at then
    return "delayed"
  elseif status == "PENDING" and not task.role then
    return "ready"
  elseif status == "WAITING" and redis.call("ZSCORE", tx.key.waits, task.id) then
    return "waits"
  elseif task.limit_at or task.warn_at or task.grace_at then
    return "limits"
  elseif task.deadline_at then
    return "deadlines"
  end
end
