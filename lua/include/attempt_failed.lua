-- attempt_failed decides what becomes of a task whose attempt failed: it runs
-- again, or this was its end. N retries are N + 1 attempts; a task is never
-- retried past its deadline, since it could not end there but by timing out.
--
--   failure  class  error: may be retried; failed: declared permanent; timeout: the attempt took too long
--            error  what the handler said        code   its exit code, or ""
--            delay  ms before the next attempt   call   of the report
--
-- @include finish
-- @include requeue
-- @include emit
local function attempt_failed(k, task, at, failure)
  local retries = tonumber(task.retries or 0)
  local fields = {"call", failure.call}
  if failure.code ~= "" then
    fields[3], fields[4] = "code", failure.code
  end
  if failure.class == "timeout" then
    finish(k, task, {status = "FAILED", reason = "timeout", timeout_type = "attempt",
      error = "Task exceeded deadline", settled = true, fields = fields}, at)
    return
  end

  local final = tonumber(task["until"] or task.deadline_at)
  local wanted = failure.class == "error" and retries < tonumber(task.max_retries or 0)
  if wanted and not (final and at + failure.delay > final) then
    task.retries = retries + 1
    fields[1] = "requeued_by"
    fields[#fields + 1], fields[#fields + 2] = "retries", task.retries
    fields[#fields + 1], fields[#fields + 2] = "last_error", failure.error
    emit(k, "all", "task_retried", task, at)
    requeue(k, task, at, failure.delay, false, fields)
    return
  end
  if wanted then
    fields[#fields + 1], fields[#fields + 2] = "retry_state", "deadline"
  end
  finish(k, task, {status = "FAILED", reason = failure.class, error = failure.error,
    settled = true, fields = fields}, at)
end
