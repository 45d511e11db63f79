-- fires reports how a wait fires by its counters: "satisfied"; "impossible", if the members left cannot satisfy it; or
-- nil, if it does not fire yet.
--
--   w  ok, bad, settled        counters
--      need_ok, most_bad, all  thresholds; nil for one that the mode does not use (agent/thresholds.lua)
local function fires(w)
  if w.need_ok and w.ok >= w.need_ok then
    return "satisfied"
  elseif w.most_bad and w.bad >= w.most_bad then
    return "impossible"
  elseif w.settled >= w.all then
    return w.need_ok and "impossible" or "satisfied"
  end
end
