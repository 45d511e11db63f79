-- count_ends counts the ends of members that this unit has written, each in the wait of its owner. If a wait cannot be
-- read, its owner is put aside, and its members are not.
--
-- @use store/own
-- @use task/put_aside
-- @use agent/count_wait
local function count_ends(tx)
  local noted, before = own(tx, "noted"), tx.on
  while noted[1] do
    local id = table.remove(noted, 1)
    local members = noted[id]
    noted[id] = nil
    local w = tx.waits[id]
    if w.broken then
      put_aside(tx, id, w.broken, {tx.key.waits})
    elseif w == members.wait and (w.state == "open" or w.state == "forming") then
      tx.on = id
      count_wait(tx, id, w, members)
    end
  end
  tx.on = before
end
