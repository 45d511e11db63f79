-- fires tells whether a wait fires by its counters, and how: "satisfied", "impossible" (what it waits for
-- cannot come any more), or nil.
--
--   w  ok, bad, settled        counters
--      need_ok, most_bad, all  thresholds; nil for one that the mode has not (wait/thresholds.lua)
local function fires(w)
  if w.need_ok and w.ok >= w.need_ok then
    return "satisfied"
  elseif w.most_bad and w.bad >= w.most_bad then
    return "impossible"
  elseif w.settled >= w.all then
    return w.need_ok and "impossible" or "satisfied"
  end
end
