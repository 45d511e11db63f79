-- wait_limit returns the instant at which the wait is out of time, or nil if that is not known yet. A limit that starts
-- with the first end starts now if a member has ended already. If an earlier attempt came to the same wait, its limit
-- is kept.
--
-- A limit can also start at a given instant, which may be in the past.
--
-- A computed limit is 1.5 × the longest span of a member × the number of members, at most 30 min. It is 30 min
-- if no member has a span. It is stored in s.wait.limit_ms.
local function wait_limit(tx, s, c)
  local w = s.wait
  local span = tonumber(w.limit_ms)
  if w.limit_ms == "computed" then
    span = math.floor(c.longest * c.total * 1.5)
    span = span > 0 and math.min(span, 1800000) or 1800000
    w.limit_ms = string.format("%d", span)
  end
  if c.ends then
    return c.ends
  end
  local from = tonumber(w.from)
  if span and from then
    return from + span
  end
  return span and (w.from == "registered" or c.settled > 0) and tx.at + span or nil
end
