-- end_hook enqueues the hook of a task for the way it ended, if the task has one. A timeout uses the hook for failures
-- if the task has no hook for timeouts.
--
-- @use task/hook
local function end_hook(tx, task)
  if task.status == "COMPLETED" then
    if task.hook_success then
      hook(tx, task, "success", task.hook_success)
    end
  elseif task.status == "CANCELLED" then
    if task.hook_cancel then
      hook(tx, task, "cancel", task.hook_cancel)
    end
  elseif task.timed_out and task.hook_timeout then
    hook(tx, task, "timeout", task.hook_timeout)
  elseif task.hook_failure then
    hook(tx, task, "failure", task.hook_failure)
  end
end
