-- collected takes the ends that an agent was not given yet, when the agent comes to a wait of the mode collect. Children
-- whose time is up end first. It returns "satisfied", or nil if the agent must wait.
--
--   c  wait/earlier_part.lua; collected sets names and members
--
-- @use store/record
-- @use task/load_task
-- @use wait/ends
-- @use wait/unseen
local function collected(tx, id, c)
  record.set(tx, record.get(tx, id), "collects", "1")
  local before = tx.on
  for _, m in ipairs(unseen(tx, id, tx.at)) do
    tx.on = m.id
    load_task(tx, m.id)
  end
  tx.on = before
  if ends.any(tx, id) then
    c.names = ends.take(tx, id)
    c.members = table.concat(c.names, " ")
    return "satisfied"
  end
end
