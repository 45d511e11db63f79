-- nearest_patience returns the earliest instant at which the own limit of a member in an agent's wait is over, or nil
-- if no member has one. It raises if the key is of the wrong type.
--
-- @use store/index
local function nearest_patience(tx, id)
  local key = tx.key.patience .. id
  local some = redis.call("ZRANGE", key, 0, index.removals(tx, key), "WITHSCORES")
  for i = 1, #some, 2 do
    if not index.removed(tx, key, some[i]) then
      return tonumber(some[i + 1])
    end
  end
end
