-- final is the latest instant at which a task may live: its own deadline, or its owner's if that is not
-- later. nil: there is none.
local function final(task)
  return tonumber(task["until"] or task.deadline_at or nil)
end
