-- live tells whether a task can still change.
local function live(task)
  local s = task.status
  return s == "PENDING" or s == "RUNNING" or s == "WAITING"
end
