-- owner_state returns the record of a task's owner if the owner lives. It returns nil if there is no owner, if it has
-- ended, or if its record cannot be read.
--
-- @use store/record
-- @use store/live
local function owner_state(tx, task)
  local state = task.owner and record.get(tx, task.owner)
  if state and live(state) then
    return state
  end
end
