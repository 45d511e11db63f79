-- fail_attempt retries a task whose attempt failed, or ends it. N retries are N + 1 attempts. A retry is reported to
-- the attempt's own worker only: waits, hooks and terminal events are for the end of the task.
--
--   failure  class, since, verdict, delay   see task/retry_at.lua
--            error  the handler's error
--            code   its exit code, "" for none
--            call   the call that reported it; nil if the clock ended the attempt: the worker is notified
--
-- @use store/emit
-- @use store/publish
-- @use store/record
-- @use store/tally
-- @use task/finish
-- @use task/put_back
-- @use task/retry_at

local function tell_retry(tx, task, failure, start)
  if failure.class == "timeout" then
    emit(tx, "all", "attempt_timed_out", task, "timeout_type=attempt policy_applied=retry" ..
      " timeout_duration_ms=" .. string.format("%d", failure.since - task.started_at) ..
      " deadline_at=" .. (task.deadline_at or "") .. " detected_at=" .. tx.now .. " lag_ms=" .. string.format("%d", tx.at - failure.since) ..
      " available_at=" .. string.format("%d", start))
  else
    emit(tx, "all", "task_retried", task, "reason=" .. failure.class .. " available_at=" .. string.format("%d", start))
  end
end

local function fail_attempt(tx, task, failure)
  local timeout = failure.class == "timeout"
  local start, state = retry_at(task, failure)
  local code = failure.code ~= "" and failure.code or nil
  local said = timeout and task.on_timeout or not timeout and failure.verdict
  local retry_error = string.match(said or "", "^fail: (.+)")
  local text = timeout and "Task exceeded deadline" or failure.error
  if not start then
    finish(tx, task, {status = "FAILED", reason = failure.class, error = text, by_worker = failure.call ~= nil,
      call = failure.call, code = code, retry_error = retry_error, retry_state = state,
      timeout_type = timeout and "attempt" or nil, completed_at = timeout and failure.since or nil})
    return
  end
  if not failure.call and task.status == "RUNNING" then
    publish.stop(tx, task, "timeout")
  end
  if code then
    record.set(tx, task, "code", code)
  end
  if retry_error then
    record.set(tx, task, "retry_error", retry_error)
  end
  if timeout then
    tally.timeout(tx, task, " retried timeout", "attempt", failure.since)
    tally.retried_node(tx, task)
  end
  tell_retry(tx, task, failure, start)
  task.retries = string.format("%d", (task.retries or 0) + 1)
  record.set(tx, task, "last_error", string.sub(text, 1, 4096))
  put_back(tx, task, start)
end
