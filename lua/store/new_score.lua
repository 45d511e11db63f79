-- new_score returns the score that a member of a sorted set has after this unit, or nil if it has none then. A member
-- that index.add_new adds has none yet.
local function new_score(tx, key, member)
  local score = tx.index[key] and tx.index[key].score[member]
  if score == nil then
    score = redis.call("ZSCORE", key, member)
  end
  return score or nil
end
