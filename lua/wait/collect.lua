-- collect decides an open wait of the mode collect, which is over with the first end of any child of the agent. Its cost
-- does not depend on the number of children. Children whose time was up by then end first, so that one wait hands over
-- all ends up to that instant, whoever looks when (wait/count_wait.lua).
--
--   ids   children whose end this unit has written, and added to the ends (wait/ends.lua)
--   upto  children that were due by this instant end too; nil: by the latest of these ends
--
-- @use store/own
-- @use store/record
-- @use task/live
-- @use task/load_task
-- @use wait/unseen

-- end_due ends children whose time was up.
local function end_due(tx, id, upto, ids)
  local before = tx.on
  for _, m in ipairs(unseen(tx, id, upto)) do
    tx.on = m.id
    load_task(tx, m.id)
    ids[#ids + 1] = m.id
  end
  tx.on = before
end

local function collect(tx, id, w, written, upto)
  local ids, latest, first, at = {}, nil, nil, nil
  for _, child in ipairs(written) do
    ids[#ids + 1], latest = child, math.max(latest or 0, tonumber(record.get(tx, child).completed_at))
  end
  upto = upto or latest
  if w.state ~= "open" or not upto then
    return
  end
  end_due(tx, id, upto, ids)
  for _, child in ipairs(ids) do
    local task = record.get(tx, child)
    local ended = task and task.status and not live(task) and tonumber(task.completed_at)
    if ended and (not at or ended < at) then
      first, at = task, ended
    end
  end
  if first and not (w.ends and at > w.ends) then
    w.state, w.reason, w.winner, w.changed = "fired", "satisfied", string.sub(first.id, #id + 2), true
    w.fired_at = math.max(at, w.since or 0)
    local fired = own(tx, "fired")
    fired[#fired + 1] = id
  end
end
