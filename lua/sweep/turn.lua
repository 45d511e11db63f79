-- turn decides whether this reaper is the precise one, and when it must look again. One reaper is precise, the
-- others look at the fall-back, so that a hundred cost what one does. Correctness does not depend on it.
--
--   s  reaper, fallback, full, errors
--
-- Returns the ms to wait, and whether this reaper has the turn
--
-- On the clocks with a 1 what is due at an instant is so after it, strictly; on the others from it on.
local clocks = {deadlines = 1, limits = 1, waits = 1, workers = 1, delayed = 0, throttled = 0, retained = 0, draining = 0, forget = 0}

local function turn(tx, s)
  local state = redis.pcall("HMGET", tx.key.root, "turn", "turn_until")
  local till = tonumber(state[2] or nil) or 0
  local precise = state[1] == s.reaper or till <= tx.at or till > tx.at + 2 * s.fallback -- the clock was set back
  local wait = s.full and 0 or s.fallback
  if precise then
    if not s.full then
      for clock, strict in pairs(clocks) do
        local first = redis.pcall("ZRANGE", tx.key[clock], 0, 0, "WITHSCORES")
        if first[2] then
          wait = math.min(wait, math.max(first[2] + strict - tx.at, 0))
        end
      end
    end
    redis.pcall("HSET", tx.key.root, "turn", s.reaper, "turn_until", string.format("%d", tx.at + 2 * s.fallback),
      "armed", string.format("%d", tx.at + wait))
  end
  return wait, precise
end
