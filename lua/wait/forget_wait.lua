-- forget_wait forgets the wait that an agent is at. Members that end from then on count for nothing. What
-- each member had of patience stays until the agent's end, or until it has come past this wait
-- (wait/wake_agent.lua): it may come to it again.
--
-- @use store/index
-- @use store/later
-- @use store/own
-- @use store/record
local function forget_wait(tx, task)
  local key = tx.key
  for _, name in ipairs({key.wait .. task.id, key.pending .. task.id, key.settled .. task.id}) do
    later.drop(tx, name)
    index.forget(tx, name)
  end
  own(tx, "waits")[task.id] = {state = false, names = {}, gone = {}, fields = {}}
  record.set(tx, task, "waiting", nil)
end
