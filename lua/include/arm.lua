-- arm puts a live task on the clock of limits at its nearest instant, or takes it off.
--
-- @include nearest
-- @include later
-- @include alarm
local function arm(k, task)
  local first = nearest(task)
  if first then
    later(k, "ZADD", k.limits, task.id, string.format("%d", first))
    alarm(k, first)
  else
    later(k, "ZREM", k.limits, task.id)
  end
end
