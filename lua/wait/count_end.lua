-- count_end notes the end of a member, to be counted in its owner's wait. All ends of a unit are counted at the end of
-- the unit, in the order of their instants (wait/count_ends.lua).
--
-- @use store/own
-- @use wait/read_wait
local function count_end(tx, task, owner)
  local noted = own(tx, "noted")
  local ends = noted[owner.id]
  read_wait(tx, owner.id)
  if not ends then
    ends = {}
    noted[owner.id], noted[#noted + 1] = ends, owner.id
  end
  if ends.wait ~= tx.waits[owner.id] then -- the earlier ends belong to a wait that is forgotten
    noted[owner.id] = {wait = tx.waits[owner.id]}
    ends = noted[owner.id]
  end
  ends[#ends + 1] = task.id
end
