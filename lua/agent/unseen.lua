-- unseen returns the members that were out of time by an instant, and whose end is not written yet.
--
-- @use store/attempt
-- @use store/live
-- @use store/own
-- @use store/owner
-- @use store/record
-- @use task/ending

local most = 100

-- overdue returns the ids of children that are due on a clock and have not ended yet, by owner. A unit reads the
-- first 100 due ids of each clock, once.
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

local function unseen(tx, id, upto)
  local before, ids, members = tx.on, {}, {}
  for member in pairs(overdue(tx)[id] or {}) do
    ids[#ids + 1] = member
  end
  record.load(tx, ids)
  for _, member in ipairs(ids) do
    tx.on = member -- if deciding raises, the member is at fault and not its agent
    local task = record.get(tx, member)
    local over = task and live(task) and ending(tx, task)
    if over and over.completed_at <= upto then
      members[#members + 1] = {name = string.sub(member, #id + 2), id = member, ended = over.completed_at}
    end
  end
  tx.on = before
  return members
end
