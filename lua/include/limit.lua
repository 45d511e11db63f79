-- limit sets the instant at which a task has stood in line long enough, or its attempt
-- has taken long enough. One that the deadline precedes is not kept.
--
--   instant  a number, or nil for no limit
--
-- @include arm
local function limit(k, task, instant)
  local final = tonumber(task["until"] or task.deadline_at)
  if instant and not (final and final <= instant) then
    task.limit_at = string.format("%d", instant)
    redis.call("HSET", k.task .. task.id, "limit_at", task.limit_at)
    arm(k, task)
  elseif task.limit_at then
    redis.call("HDEL", k.task .. task.id, "limit_at")
    task.limit_at = nil
    arm(k, task)
  end
end
