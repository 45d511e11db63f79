-- did counts an action of a sweep (sweep/look.lua).
local function did(r, what)
  r.counts[what] = (r.counts[what] or 0) + 1
end
