-- collected takes the ends that an agent was not given yet, when the agent comes to a wait of the mode collect. Children
-- whose time is up end first. It returns "satisfied", or nil if the agent must wait. If the limit of the wait was over
-- before the first of these ends, the agent waits for the sweep to say so, and the next wait hands over the ends.
--
--   c  agent/earlier_part.lua; collected sets names and members
--
-- @use agent/end_due
-- @use wait/ends
-- @use agent/first_end
-- @use agent/wait_limit

-- too_late reports whether the limit was over before any of these children ended.
local function too_late(tx, s, c, names)
  local limit = wait_limit(tx, s, c)
  if not limit or limit >= tx.at then
    return false
  end
  local ids = {}
  for i, name in ipairs(names) do
    ids[i] = s.id .. "." .. name
  end
  local _, at = first_end(tx, ids)
  return not at or at > limit
end

local function collected(tx, s, c)
  end_due(tx, s.id, tx.at)
  local names = ends.kept(tx, s.id)
  if not names[1] or too_late(tx, s, c, names) then
    return nil
  end
  c.names = ends.take(tx, s.id)
  c.members = table.concat(c.names, " ")
  return "satisfied"
end
