-- repair_wait gives back an agent whose wait is damaged. Its next attempt replays its journal and comes to the wait again:
-- then the wait is made of the records of its members, and keeps its limit if that is still known.
--
--   where  epoch and entry of the wait that was seen. If the agent is elsewhere by now, only its indexes are repaired
--
-- @use store/record
-- @use task/return_claim
-- @use repair/repair_task
local function repair_wait(tx, s, id, where)
  local task = record.get(tx, id)
  local waits = task and task.waiting and (task.status == "WAITING" or task.status == "RUNNING")
  if waits and (task.epoch or "") .. " " .. task.waiting == where then
    return_claim(tx, task, false)
    return {"give the agent back: it comes to its wait again"}
  end
  return repair_task(tx, s, id, "")
end
