-- hooked returns the id of a live hook of the task, nil if there is none. The record of the task waits for its hook: if
-- another task used the id meanwhile, its own hook could not be made.
--
-- @use store/record
-- @use task/live
local function hooked(tx, task)
  for _, event in ipairs({"success", "failure", "timeout", "cancel"}) do
    local hook = task["hook_" .. event] and record.get(tx, task.id .. "!" .. event)
    if hook and live(hook) then
      return hook.id
    end
  end
end
