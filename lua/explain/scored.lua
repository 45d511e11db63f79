-- scored is an instant that something has in a clock, nil if it is not there; servers differ in how they write
-- one.
--
-- @use explain/ask
local function scored(key, member)
  local score = tonumber(ask("ZSCORE", key, member) or nil)
  return score and string.format("%d", score)
end
