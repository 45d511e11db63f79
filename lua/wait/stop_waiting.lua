-- stop_waiting removes a WAITING agent from the counts of waiting agents, and from the clock of waits. Its queue counts the
-- agent among all waiting agents, and in the counter that the record names (agent/open_wait.lua). An agent that an older
-- version has suspended has no such name.
--
-- @use queue/count
-- @use store/index
-- @use store/record
local function stop_waiting(tx, agent)
  index.remove(tx, tx.key.waits, agent.id)
  count.add(tx, agent.queue, "waiting", -1)
  if agent.counted_as then
    count.add(tx, agent.queue, agent.counted_as, -1)
    record.set(tx, agent, "counted_as", nil)
  end
end
