-- is_attempt_limit tells whether the limit on a task is that of its attempt, and not that of its line.
-- The attempt of an agent goes on while it waits, and while it stands in line because it was woken.
local function is_attempt_limit(task)
  return task.status ~= "PENDING" or (task.woken or false) and task.limit_at == task.attempt_at
end
