-- live reports whether a task can still change.
local alive = {PENDING = true, RUNNING = true, WAITING = true}

local function live(task)
  return alive[task.status]
end
