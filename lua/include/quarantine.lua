-- quarantine takes an id whose record cannot be worked with off every clock, so
-- that it stops nobody else, and keeps it in broken for whoever mends it. Any of
-- the keys may be what is wrong, so each step is allowed to fail.
--
--   clocks  to take it off, if not all
--
-- @include emit
local function quarantine(k, id, at, why, clocks)
  for _, clock in ipairs(clocks or {k.deadlines, k.limits, k.delayed, k.waits, k.draining, k.retained}) do
    redis.pcall("ZREM", clock, id)
  end
  redis.pcall("ZADD", k.broken, at, id)
  k.ruined = true
  pcall(emit, k, "terminal", "task_broken", {id = id, kind = "", queue = ""}, at, "error", why)
end
