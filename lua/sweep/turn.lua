-- turn decides which reaper sweeps precisely, and when each reaper must call again. The reaper with the turn sweeps when
-- something is due, and after the fall-back at the latest. The others are on standby and check one after the other that it
-- still does, so a thousand reapers cost little more than one. Correctness does not depend on the turn.
--
-- Standby reapers check at instants that are a quarter of a fall-back apart, each at the next free one. So a check is never
-- far away, also if several reapers die together. Each sleeps for at least one fall-back, and for at most 60.
local turn = {}

-- clocks maps a clock to the ms from the instant of an entry until it is due: deadlines are due strictly after their instant.
local clocks = {deadlines = 1, limits = 1, waits = 1, workers = 1, delayed = 0, throttled = 0, retained = 0, draining = 0, forget = 0}

-- has reports whether this reaper has the turn or can take it. It sets s.standby, the last instant of a standby reaper.
--
--   s  reaper, fallback
function turn.has(tx, s)
  local state = redis.pcall("HMGET", tx.key.root, "turn_of", "turn_until", "standby")
  local till = tonumber(state[2]) or 0
  s.standby = tonumber(state[3]) or 0
  return state[1] == s.reaper or till <= tx.at or till > tx.at + 2 * s.fallback -- the clock was set back
end

-- is_kept reports whether the reaper with the turn is on time. If it is, nothing is due (store/messages.lua).
function turn.is_kept(tx)
  return tx.root.armed and tx.root.armed > tx.at
end

-- pass assigns the next instant to this standby reaper, or the longest sleep of 60 fall-backs if all are taken.
--
-- Returns the ms to wait
function turn.pass(tx, s)
  local latest, last = tx.at + 60 * s.fallback, s.standby
  if last > latest then -- the clock was set back
    last = 0
  end
  local look = math.max(tx.at + s.fallback, last + math.ceil(s.fallback / 4))
  if look >= latest then
    return 60 * s.fallback
  end
  redis.pcall("HSET", tx.key.root, "standby", string.format("%d", look))
  return look - tx.at
end

-- keep makes this reaper sweep when the next entry is due. A message wakes it for a new entry that is due sooner.
--
--   s  reaper, fallback, full: there is more to do, so the wait is 0
--
-- Returns the ms to wait
function turn.keep(tx, s)
  local wait = s.full and 0 or s.fallback
  for clock, strict in pairs(s.full and {} or clocks) do
    local first = redis.pcall("ZRANGE", tx.key[clock], 0, 0, "WITHSCORES")
    if first[2] then
      wait = math.min(wait, math.max(first[2] + strict - tx.at, 0))
    end
  end
  redis.pcall("HSET", tx.key.root, "turn_of", s.reaper, "turn_until", string.format("%d", tx.at + 2 * s.fallback),
    "swept_at", tx.now, "armed", string.format("%d", tx.at + wait))
  return wait
end
