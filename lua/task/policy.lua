-- policy returns what the timeout of a task does, as its event and the figures say: cancel_all ends its children, too;
-- fail ends the task, and its owner counts it as failed (wait/counts_as.lua) if on_deadline of the task is fail.
local function policy(task)
  local of_the_run = task.timeout_type == "execution" or task.timeout_type == "workflow"
  return of_the_run and task.children and (task.on_deadline or "cancel_all") or "fail"
end
