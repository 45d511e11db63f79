-- again decides whether a task whose attempt failed runs again. It returns from which
-- instant on, or nil; with "deadline" if only the time for it is missing: a task is
-- never retried past its end, since it could not end there but by timing out.
--
--   class    error: retried; failed: declared permanent; timeout: the attempt took too
--            long, which the task's on_timeout decides on
--   since    the instant at which the attempt failed
--   verdict  what a retry expression said of it, "retry" or not; it decides on error
--            and failed alike
--   delay    ms, or nil for the task's own back-off
--
-- @include backoff
local function again(task, class, since, verdict, delay)
  local wanted
  if class == "timeout" then
    wanted = task.on_timeout == "retry"
  elseif task.retry_expression then
    wanted = verdict == "retry"
  else
    wanted = class == "error"
  end
  local retries = tonumber(task.retries or 0)
  if not wanted or task.cancel_at or retries >= tonumber(task.max_retries or 0) then
    return nil
  end
  local start = since + (delay or backoff(task, retries))
  local final = tonumber(task["until"] or task.deadline_at)
  if final and start > final then
    return nil, "deadline"
  end
  return start
end
