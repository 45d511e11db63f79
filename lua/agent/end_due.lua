-- end_due ends the children of an agent that were out of time by an instant, in the order of their instants. It returns
-- their ids.
--
-- @use task/load_task
-- @use agent/unseen
local function end_due(tx, id, upto)
  local before, due, ids = tx.on, unseen(tx, id, upto), {}
  table.sort(due, function(a, b)
    return a.ended < b.ended or a.ended == b.ended and a.id < b.id
  end)
  for i, m in ipairs(due) do
    tx.on = m.id
    load_task(tx, m.id)
    ids[i] = m.id
  end
  tx.on = before
  return ids
end
