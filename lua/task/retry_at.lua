-- retry_at decides whether a task whose attempt failed runs again. It returns the instant of the retry, or nil. If
-- only the time is missing, it returns nil and "deadline": a retry that starts after the task's end could only
-- time out.
--
--   failure  class    error: retried; failed: the handler said not to retry; timeout: the attempt took too long,
--                     and the task's on_timeout decides
--            since    the instant at which the attempt failed
--            verdict  the result of the task's retry expression: only "retry" retries. It decides on error and failed
--            delay    ms, or nil for the task's own back-off
--
-- @use task/final

-- backoff returns the ms between a failed attempt and the next one: backoff_ms, doubled by each retry if it is
-- exponential, at most backoff_max_ms or a day, less a part of up to `jitter` percent. That part depends on the id
-- and the retry, so that many tasks that failed together are retried at different instants, and a repeated
-- call computes the same one. (The random numbers of Redis start again in every script.)
local function backoff(task, retries)
  local span = tonumber(task.backoff_ms or 0)
  if task.backoff == "exponential" then
    span = span * 2 ^ retries
  end
  span = math.min(span, tonumber(task.backoff_max_ms or 86400000))
  if task.jitter then
    local drawn = tonumber(string.sub(redis.sha1hex(task.id .. ":" .. retries), 1, 8), 16) / 4294967296
    span = span * (1 - drawn * task.jitter / 100)
  end
  return math.floor(span)
end

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
