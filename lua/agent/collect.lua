-- collect decides an open wait of the mode collect, which is over with the first end of any child of the agent. Its cost
-- does not depend on the number of children. Children whose time was up by then end first, so that one wait hands over
-- all ends up to that instant, whoever looks when (agent/count_wait.lua).
--
--   written  children whose end this unit has written, and added to the ends (wait/ends.lua)
--   upto     children that were due by this instant end too; nil: by the latest of these ends
--
-- @use store/own
-- @use store/record
-- @use agent/end_due
-- @use agent/first_end
local function collect(tx, id, w, written, upto)
  local ids, latest = {}, nil
  for _, child in ipairs(written) do
    ids[#ids + 1], latest = child, math.max(latest or 0, tonumber(record.get(tx, child).completed_at))
  end
  upto = upto or latest
  if w.state ~= "open" or not upto then
    return
  end
  for _, child in ipairs(end_due(tx, id, upto)) do
    ids[#ids + 1] = child
  end
  local first, at = first_end(tx, ids)
  if first and not (w.ends and at > w.ends) then
    w.state, w.reason, w.winner, w.changed = "fired", "satisfied", string.sub(first, #id + 2), true
    w.fired_at = math.max(at, w.since or 0)
    local fired = own(tx, "fired")
    fired[#fired + 1] = id
  end
end
