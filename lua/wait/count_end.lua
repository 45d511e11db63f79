-- count_end notes the end of a member, to be counted in its owner's wait. All ends of a unit are counted at the end of
-- the unit, in the order of their instants (agent/wake_agents.lua).
--
-- @use store/own
-- @use wait/read_wait
local function count_end(tx, task, owner)
  read_wait(tx, owner.id)
  local noted, w = own(tx, "noted"), tx.waits[owner.id]
  local ends = noted[owner.id]
  if not ends then
    noted[#noted + 1] = owner.id
  end
  if not ends or ends.wait ~= w then -- earlier ends belong to a wait that is forgotten
    ends = {wait = w}
    noted[owner.id] = ends
  end
  ends[#ends + 1] = task.id
end
