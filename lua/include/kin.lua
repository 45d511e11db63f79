-- kin is what an end needs to know of the owner of who ended: whether it lives, and whether
-- it is at a wait. A batch ends many children of one owner, so it is kept until flush, with
-- what tally has counted meanwhile; who ends the owner, or forgets its wait, forgets this.
--
-- @include live
local function kin(k, parent)
  local known = k.kin[parent]
  if not known then
    local state = redis.pcall("HMGET", k.task .. parent, "status", "waiting") -- an owner that cannot be read is none
    known = {live = live({status = state[1]}), waits = state[2]}
    k.kin[parent] = known
  end
  return known
end
