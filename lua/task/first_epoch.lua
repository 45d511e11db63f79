-- first_epoch returns the epoch of a task's first claim: 1. The id of a task with a name is used again by the next task
-- of the name, and so are those of its children and hooks. Their epochs begin with the instant at which the task was
-- made, in ms, so that they grow from one task to the next: a claim of an earlier task does not hold a later one.
local function first_epoch(task)
  return string.find(task.id, "^%d+%-[ne]%-") and task.created_at or "1"
end
