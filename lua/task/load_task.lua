-- load_task reads a task and ends it, or its attempt, first if its time is up. Every call that touches
-- a task begins with it, so what is late is late though no reaper ran.
--
-- Returns the task; its status is false if there is none. nil and why if its record cannot be worked
-- with: then it has been put aside
--
-- @use store/record
-- @use task/live
-- @use task/ending
-- @use task/is_attempt_limit
-- @use task/finish
-- @use task/fail_attempt
-- @use task/put_aside

-- may_be_over tells whether a task needs a closer look: most are root tasks that have nothing but a deadline.
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
