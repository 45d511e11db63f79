-- quarantine takes an id whose record cannot be worked with off every clock, so
-- that it stops nobody else, and keeps it in broken for whoever mends it. Any of
-- the keys may be what is wrong, so each step is allowed to fail.
--
-- @include emit
local function quarantine(k, id, at, why)
  for _, clock in ipairs({k.deadlines, k.limits, k.delayed, k.draining, k.retained}) do
    redis.pcall("ZREM", clock, id)
  end
  redis.pcall("ZADD", k.broken, at, id)
  k.ruined = true
  pcall(emit, k, "terminal", "task_broken", {id = id}, at, "error", why)
end
