-- unseen returns the members that were out of time by an instant, and whose end is not written yet.
--
-- @use store/record
-- @use task/ending
-- @use store/live
-- @use agent/overdue
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
