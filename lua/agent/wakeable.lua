-- wakeable says whether an agent whose wait has fired can be woken.
--
-- @use store/alarm
-- @use store/index
-- @use task/ending
local wakeable = {}

-- look_again has the sweep look at the agent again.
function wakeable.look_again(tx, id)
  index.add(tx, tx.key.waits, string.format("%d", tx.at - 1), id)
  alarm.note(tx, tx.at)
end

-- now reports whether an agent waits and has time left. If its own limit in its owner's wait is over, that wait may
-- have been decided before, and then the limit ends nothing: the sweep looks again.
function wakeable.now(tx, agent, w)
  if w.state ~= "fired" or agent.status ~= "WAITING" or agent.limit_at and tonumber(agent.limit_at) < tx.at then
    return false
  end
  local over = ending(tx, agent)
  if over and over.reason == "wait_timeout" then
    wakeable.look_again(tx, agent.id)
  end
  return not over
end
