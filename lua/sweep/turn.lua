-- turn decides which reaper is the precise one, and when each reaper must sweep again. One reaper has the turn. It
-- sweeps when something is due, and after the fall-back at the latest. The others check, one after the other, that it
-- still does, so a thousand reapers cost little more than one. Correctness does not depend on the turn.
--
-- Each standby reaper that checks gets the next instant of a line. A fall-back holds four such instants. So some
-- reaper checks often, however many there are; if several die together, the next live one soon checks. Each
-- sleeps for one fall-back at the least, and for 60 at the most.
local turn = {}

-- An entry of a clock with 1 is due strictly after its instant; of a clock with 0, from its instant on.
local clocks = {deadlines = 1, limits = 1, waits = 1, workers = 1, delayed = 0, throttled = 0, retained = 0, draining = 0, forget = 0}

-- has reports whether this reaper has the turn, or can take it.
--
--   s  reaper, fallback; gets standby: the last instant in the line of standby reapers
function turn.has(tx, s)
  local state = redis.pcall("HMGET", tx.key.root, "turn_of", "turn_until", "standby")
  local till = tonumber(state[2] or nil) or 0
  s.standby = tonumber(state[3] or nil) or 0
  return state[1] == s.reaper or till <= tx.at or till > tx.at + 2 * s.fallback -- the clock was set back
end

-- is_kept reports whether the reaper with the turn is on time: then nothing is due (store/messages.lua).
function turn.is_kept(tx)
  return tx.root.armed and tx.root.armed > tx.at
end

-- pass gives this reaper the next instant of the line. If the line is full, it gets the longest sleep, 60 fall-backs.
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

-- keep makes this reaper sweep when the next entry is due. The alarm rings for a new entry that is due sooner.
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
