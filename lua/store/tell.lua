-- tell collects what a call's reply reports, for the caller to log: tasks that timed out, and agents that were
-- woken, each as five words.
--
--   timed_out  id, kind, timeout_type, the instant at which its time was up
--   woken      id, kind, how its wait ended, the decisive member or ""
--
-- @use store/own
local tell = {}

function tell.timed_out(tx, task)
  local timeouts = own(tx, "timeouts")
  timeouts[#timeouts + 1] = task
end

function tell.woken(tx, agent, wait)
  local woken = own(tx, "woken")
  woken[#woken + 1] = {agent, wait}
end

-- keep adds the reports of a unit to the reply, now that the unit is written.
function tell.keep(tx)
  tx.timers_fired = tx.timers_fired + tx.timers
  for _, task in ipairs(tx.timeouts) do
    local told = own(tx, "told")
    local n = #told
    tx.timed_out = tx.timed_out + 1
    told[n + 1], told[n + 2], told[n + 3] = "timed_out", task.id, task.kind
    told[n + 4], told[n + 5] = task.timeout_type, task.completed_at
  end
  for _, woken in ipairs(tx.woken) do
    local told, agent, wait = own(tx, "told"), woken[1], woken[2]
    local n = #told
    told[n + 1], told[n + 2], told[n + 3] = "woken", agent.id, agent.kind
    told[n + 4], told[n + 5] = wait.reason, wait.winner or ""
  end
end
