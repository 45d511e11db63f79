-- cancel_losers cancels members that a decided wait no longer needs, by priority, as many as this call can still
-- cancel. It reports whether more are left.
--
-- @use store/index
-- @use agent/cancel_member
local function cancel_losers(tx, id, w, why)
  local key = tx.key.pending .. id
  local left = {}
  for _, name in ipairs(redis.call("ZRANGE", key, 0, tx.may_cancel + index.removals(tx, key))) do
    if not w.gone[name] then
      left[#left + 1] = name
    end
  end
  for i = 1, math.min(#left, tx.may_cancel) do
    w.gone[left[i]] = true
    index.remove(tx, key, left[i])
    tx.may_cancel = tx.may_cancel - 1
    cancel_member(tx, id .. "." .. left[i], why)
  end
  for _, name in ipairs(left) do
    if not w.gone[name] then
      return true
    end
  end
end
