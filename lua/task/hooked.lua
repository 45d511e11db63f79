-- hooked returns the id of a hook of the task that has not ended, or nil if all have ended. The record of a task is kept
-- until its hook has ended: otherwise another task could use the id, and its own hook could not be made.
--
-- @use store/record
-- @use store/live
local function hooked(tx, task)
  for _, event in ipairs({"success", "failure", "timeout", "cancel"}) do
    local hook = task["hook_" .. event] and record.get(tx, task.id .. "!" .. event)
    if hook and live(hook) then
      return hook.id
    end
  end
end
