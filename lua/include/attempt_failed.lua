-- attempt_failed decides what becomes of a task whose attempt failed: it runs again,
-- or this was its end. N retries are N + 1 attempts. Nobody but its own worker hears
-- of an attempt that is retried: waiters, hooks and terminal events are for the end.
--
--   failure  class    error, failed or timeout (again.lua)
--            since    the instant at which it failed
--            error    what the handler said
--            code     its exit code, "" for none
--            delay    ms before the next attempt; nil: the task's back-off
--            verdict  of the retry expression: "retry", or why not
--            call     of the report; nil: the clock ended it, and the worker is told
--
-- @include again
-- @include stamp
-- @include finish
-- @include requeue
-- @include emit
local function attempt_failed(k, task, at, failure)
  local timeout = failure.class == "timeout"
  local start, state = again(task, failure.class, failure.since, failure.verdict, failure.delay)
  local fields = {}
  local function remember(name, value)
    fields[#fields + 1], fields[#fields + 2] = name, value
  end
  if failure.code ~= "" then
    task.code = failure.code
    remember("code", failure.code)
  end
  local verdict = timeout and string.match(task.on_timeout or "", "^fail: (.+)") or
    not timeout and string.match(failure.verdict or "", "^fail: (.+)")
  if verdict then
    remember("retry_error", verdict)
  end

  if not start then
    if failure.call then
      remember("call", failure.call)
    end
    if state then
      remember("retry_state", state)
    end
    local ending = {status = "FAILED", reason = failure.class, error = failure.error, settled = failure.call ~= nil,
      fields = fields}
    if timeout then
      ending.timeout_type, ending.error = "attempt", "Task exceeded deadline"
      ending.completed_at = failure.since
    end
    finish(k, task, ending, at)
    return
  end

  if not failure.call then
    if task.status == "RUNNING" then
      redis.call("PUBLISH", k.stop .. task.worker, task.id .. " " .. task.epoch .. " timeout")
    end
  else
    remember("requeued_by", failure.call)
  end
  if timeout then
    emit(k, "all", "attempt_timed_out", task, at, "timeout_type", "attempt", "policy_applied", "retry",
      "timeout_duration_ms", string.format("%d", failure.since - task.started_at), "started_at", task.started_at,
      "deadline_at", task.deadline_at or "", "detected_at", stamp(k, at),
      "lag_ms", string.format("%d", at - failure.since), "available_at", string.format("%d", start))
  else
    emit(k, "all", "task_retried", task, at, "reason", failure.class, "available_at", string.format("%d", start))
  end
  task.retries = string.format("%d", (task.retries or 0) + 1)
  remember("retries", task.retries)
  remember("last_error", timeout and "Task exceeded deadline" or failure.error)
  requeue(k, task, at, start, false, fields)
end
