-- turn decides which reaper is the precise one, and when each must look again. One reaper has the turn. It
-- looks when something is due, and after the fall-back at the latest. The others take turns at looking whether it
-- still does, so that a thousand reapers cost little more than one. Correctness does not depend on the turn.
--
-- Each other reaper that looks gets the next instant of a line in which four fit into a fall-back. So one looks
-- often, however many they are, and if some die together the next one that lives looks soon. It rests for one
-- fall-back at the least, and for 60 at the most.
local turn = {}

-- On the clocks with a 1 what is due at an instant is so after it, strictly; on the others from it on.
local clocks = {deadlines = 1, limits = 1, waits = 1, workers = 1, delayed = 0, throttled = 0, retained = 0, draining = 0, forget = 0}

-- has tells whether this reaper has the turn, or may take it.
--
--   s  reaper, fallback; gets standby: the last instant in the line of the others
function turn.has(tx, s)
  local state = redis.pcall("HMGET", tx.key.root, "turn", "turn_until", "standby")
  local till = tonumber(state[2] or nil) or 0
  s.standby = tonumber(state[3] or nil) or 0
  return state[1] == s.reaper or till <= tx.at or till > tx.at + 2 * s.fallback -- the clock was set back
end

-- is_kept tells whether the reaper with the turn is not late: then nothing is due (store/alarm.lua).
function turn.is_kept(tx)
  return tx.root.armed and tx.root.armed > tx.at
end

-- pass has this reaper look again at the end of the line. Where the line is full, it rests as long as any does.
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

-- keep has this reaper look when the next thing is due, and be told of what comes in sooner.
--
--   s  reaper, fallback, full: there is more, again at once
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
  redis.pcall("HSET", tx.key.root, "turn", s.reaper, "turn_until", string.format("%d", tx.at + 2 * s.fallback),
    "armed", string.format("%d", tx.at + wait))
  return wait
end
