-- scored returns the score of a member of a clock as whole ms, nil if the member is not there. Servers write a score in
-- different ways.
--
-- @use explain/ask
local function scored(key, member)
  local score = tonumber(ask("ZSCORE", key, member) or nil)
  return score and string.format("%d", score)
end
