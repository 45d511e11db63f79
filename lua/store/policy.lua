-- policy returns what the timeout of a task does, as its event and the figures say: cancel_all ends its children, too;
-- fail ends the task, and its owner counts it as failed (agent/counts_as.lua) if on_deadline of the task is fail. The run
-- of a flow has this policy also before it has children.
--
-- @use store/is_run
local function policy(task)
  local of_the_run = task.timeout_type == "execution" or task.timeout_type == "workflow"
  return of_the_run and (task.children or is_run(task.kind)) and (task.on_deadline or "cancel_all") or "fail"
end
