-- wake_agents counts the ends that this unit has written, and wakes the agents whose wait has fired. The losers that it
-- cancels can make other waits fire. A call wakes at most 100 agents (tx.may_wake); the sweep wakes the others.
--
-- @use store/alarm
-- @use store/index
-- @use agent/count_ends
-- @use agent/wake_agent
local function wake_agents(tx)
  local n = 1
  count_ends(tx)
  while tx.fired[n] do
    local id = tx.fired[n]
    n = n + 1
    if tx.may_wake > 0 then
      tx.may_wake, tx.on = tx.may_wake - 1, id
      wake_agent(tx, id)
    else
      index.add(tx, tx.key.waits, string.format("%d", tx.at - 1), id)
      alarm.note(tx, tx.at)
    end
    count_ends(tx)
  end
  tx.on = false
end
