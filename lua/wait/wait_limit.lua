-- wait_limit is the instant at which the wait is out of time, nil for none so far. One that begins with the
-- first end begins now if that was before. A wait that an earlier attempt came to keeps the limit that it
-- had.
--
-- A limit that is computed is the longest span of a member, times their number, times 1.5; 30 min at the
-- most, and if no member has a span. It is put down in s.wait.limit_ms.
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
  return span and (w.from == "registered" or c.settled > 0) and tx.at + span or nil
end
