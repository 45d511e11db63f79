-- timed_out returns the end of a task that timed out, as task/finish.lua takes it.
--
--   kind     whose time was up: execution (its own), queue, attempt or workflow (of an ancestor)
--   instant  when the time was up
--
-- @use store/is_run
-- @use task/retry_at
local function timed_out(task, kind, instant)
  local over = {status = "FAILED", reason = "timeout", timeout_type = kind, error = "Task exceeded deadline",
    completed_at = instant}
  if kind == "execution" and is_run(task.kind) then
    over.timeout_type = "workflow"
  end
  if kind == "execution" and task.on_deadline == "fail" then
    over.error = "Workflow exceeded timeout"
  elseif kind == "attempt" then
    local _, state = retry_at(task, {class = "timeout", since = instant})
    over.retry_state = state
    over.retry_error = not state and string.match(task.on_timeout or "", "^fail: (.+)") or nil
  end
  return over
end
