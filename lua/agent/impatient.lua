-- impatient returns the members whose own limit in the wait was over by an instant, at most as many as the call can
-- still cancel. If more are left, it also returns the instant of the last one in the list.
--
-- @use store/index
local function impatient(tx, id, upto)
  local key, bound, members = tx.key.patience .. id, string.format("%d", math.min(upto, tx.at - 1)), {}
  local most = tx.may_cancel + index.removals(tx, key) + 1
  local due = redis.call("ZRANGEBYSCORE", key, "-inf", bound, "WITHSCORES", "LIMIT", 0, most)
  for i = 1, #due, 2 do
    if not index.removed(tx, key, due[i]) then
      if #members == tx.may_cancel then
        return members, members[1] and members[#members].ended or 0
      end
      members[#members + 1] = {name = due[i], id = id .. "." .. due[i], ended = tonumber(due[i + 1]), patience = true}
    end
  end
  return members
end
