-- add_due adds the members whose time is up to the members that have ended.
--
--   due  late: members whose own time is up; upto: the instant up to which limits in the wait are checked
--
-- Returns  the members, and an instant if more members are out of time than one call can end
--
-- @use store/record
-- @use store/live
-- @use agent/impatient
-- @use agent/still_pending
local function add_due(tx, id, w, members, due)
  local more, last
  if w.patient then
    more, last = impatient(tx, id, due.upto)
  end
  local known, added = {}, {}
  for _, m in ipairs(members) do
    known[m.name] = m
  end
  for _, m in ipairs(due.late) do
    if not last or m.ended <= last then
      known[m.name], added[#added + 1] = m, m
    end
  end
  for _, m in ipairs(more or {}) do
    local same = known[m.name]
    if same and same.ended <= m.ended or same and not live(record.get(tx, m.id)) then
      same.impatient = true
    else
      added[#added + 1] = m
    end
  end
  for _, m in ipairs(still_pending(tx, id, w, added)) do
    members[#members + 1] = m
  end
  return members, last
end
