-- met_broken records that an entry of a clock cannot be worked with, and takes the entry off the clock.
--
--   r  results of this unit: counts, errors, full (sweep/look.lua)
--
-- @use store/index
local function met_broken(tx, r, clock, member, why)
  index.remove(tx, clock, member)
  r.counts.broken = (r.counts.broken or 0) + 1
  r.errors[#r.errors + 1] = member .. ": " .. why
end
