-- wake_agents counts the ends that this unit has written, and wakes the agents whose wait has fired. Losers that it cancels may make other
-- waits fire. A call wakes so many; the sweep wakes the others.
--
-- @use store/alarm
-- @use store/index
-- @use wait/count_ends
-- @use wait/wake_agent
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
