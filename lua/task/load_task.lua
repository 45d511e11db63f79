-- load_task reads a task. If the time of the task or of its attempt is up, load_task ends that first. Every call that
-- writes to a task begins with load_task, so a late task counts as late even if no reaper has run.
--
-- Returns  the task; its status is false if no task has this id
--          nil and why if its record cannot be used: then the task has been put aside
--
-- @use store/record
-- @use store/live
-- @use task/ending
-- @use task/is_attempt_limit
-- @use task/finish
-- @use task/fail_attempt
-- @use task/put_aside

-- may_be_over reports whether a task needs a full check: most are root tasks with nothing but a deadline.
local function may_be_over(tx, task)
  local deadline = task.deadline_at
  return task.rich or task.role or deadline and tonumber(deadline) < tx.at or string.find(task.id, ".", 1, true)
end

local function load_task(tx, id)
  local task, why = record.get(tx, id)
  if not task then
    put_aside(tx, id, why)
    return nil, why
  end
  if live(task) and may_be_over(tx, task) then
    local over = ending(tx, task)
    local limit = task.limit_at
    if over then
      finish(tx, task, over)
    elseif limit and tonumber(limit) < tx.at and is_attempt_limit(task) then
      fail_attempt(tx, task, {class = "timeout", since = tonumber(limit), code = ""})
    end
  end
  return task
end
