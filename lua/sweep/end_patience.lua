-- end_patience cancels members whose limit of their own in the wait of an agent is over. A member ended then,
-- whenever that was seen. A limit after that of the wait, which may begin with such an end, never comes. It
-- tells whether there are more than one call may end.
--
--   due  names and instants, earliest first
--
-- @use store/index
-- @use wait/cancel_member
local function end_patience(tx, id, w, due)
  for i = 1, #due, 2 do
    local name, instant = due[i], tonumber(due[i + 1])
    if w.ends and instant > w.ends then
      return false
    elseif tx.may_cancel == 0 then
      return true
    end
    tx.may_cancel = tx.may_cancel - 1
    index.remove(tx, tx.key.patience .. id, name)
    if not w.gone[name] and redis.call("ZSCORE", tx.key.pending .. id, name) then
      cancel_member(tx, id .. "." .. name, "patience", instant)
    end
  end
  return false
end
