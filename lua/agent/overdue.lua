-- overdue returns the ids of children that are due on a clock and have not ended yet, by owner. A unit reads the
-- first 100 due ids of each clock, once.
--
-- @use store/attempt
-- @use store/own
-- @use store/owner
local most = 100

local function overdue(tx)
  if tx.overdue ~= tx.none then
    return tx.overdue
  end
  local found = own(tx, "overdue")
  for _, clock in ipairs({"deadlines", "limits", "delayed"}) do
    local bound = (clock == "delayed" and "" or "(") .. tx.now -- a timer fires at its instant, other tasks end after theirs
    for _, id in ipairs(attempt("ZRANGEBYSCORE", tx.key[clock], "-inf", bound, "LIMIT", 0, most)) do
      local up = owner(id)
      if up then
        found[up] = found[up] or {}
        found[up][id] = true
      end
    end
  end
  return found
end
