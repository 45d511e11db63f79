-- is_attempt_limit reports whether limit_at of a task is the limit of its attempt, and not the limit of its line.
-- The attempt of an agent continues while the agent waits, and while it is in line after it was woken.
local function is_attempt_limit(task)
  return task.status ~= "PENDING" or (task.woken or false) and task.limit_at == task.attempt_at
end
