-- admit makes a task that consider.lua found to be sound.
--
-- @include alarm
-- @include create

-- adopt enters a child with its owner.
local function adopt(k, task, parent)
  redis.call("RPUSH", k.children .. parent.id, task.id) -- first: it may be of the wrong type
  redis.call("HINCRBY", k.task .. parent.id, "children", 1)
end

-- keep writes down what an idempotency key stands for, and for how long if that does
-- not depend on the task.
local function keep(k, task, window, at)
  redis.call("HSET", k.idem, task.idempotency_key, task.id .. " " .. redis.sha1hex(task.kind .. "\n" .. (task.payload or "")))
  if window then
    redis.call("ZADD", k.forget, string.format("%d", at + window), task.idempotency_key)
    alarm(k, at + window)
  end
end

local function admit(k, task, plan, at)
  local window = tonumber(task.idempotency_window_ms)
  task.timeout_ms, task.delay_ms, task.idempotency_window_ms = nil, nil, nil
  task.budget_percent, task.default_timeout_ms = nil, nil
  task.deadline_at = plan.deadline and string.format("%d", plan.deadline) or nil
  task.available_at = nil
  if plan.start and (plan.start > at or task.role) then
    task.available_at = string.format("%d", math.max(plan.start, at)) -- a timer cannot fire before it is made
  end
  local parent = plan.parent
  if parent then
    adopt(k, task, parent)
    task["until"] = plan.bound
    task.until_of = plan.bound and (parent.until_of or parent.id) or nil
  end
  if task.idempotency_key then
    keep(k, task, window, at)
  end
  create(k, task, at)
end
