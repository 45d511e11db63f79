-- retry_at decides whether a task whose attempt failed runs again. It returns from which instant on, or
-- nil; with "deadline" if only the time for it is missing: a task is never retried past its end, since
-- it could not end there but by timing out.
--
--   failure  class    error: retried; failed: declared permanent; timeout: the attempt took too long,
--                     which the task's on_timeout decides on
--            since    the instant at which the attempt failed
--            verdict  what a retry expression said of it, "retry" or not; it decides on error and failed alike
--            delay    ms, or nil for the task's own back-off
--
-- @use task/backoff
-- @use task/final
local function retry_at(task, failure)
  local wanted
  if failure.class == "timeout" then
    wanted = task.on_timeout == "retry"
  elseif task.retry_expression then
    wanted = failure.verdict == "retry"
  else
    wanted = failure.class == "error"
  end
  local retries = tonumber(task.retries or 0)
  if not wanted or task.cancel_at or retries >= tonumber(task.max_retries or 0) then
    return nil
  end
  local start, last = failure.since + (failure.delay or backoff(task, retries)), final(task)
  if last and start > last then
    return nil, "deadline"
  end
  return start
end
