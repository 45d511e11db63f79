-- final returns the latest instant at which a task can live: its own deadline, or its owner's bound if that is not
-- later. It returns nil if the task has neither.
local function final(task)
  return tonumber(task["until"] or task.deadline_at or nil)
end
