-- did counts what a sweep has done (sweep/look.lua).
local function did(r, what)
  r.counts[what] = (r.counts[what] or 0) + 1
end
