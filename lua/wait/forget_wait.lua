-- forget_wait deletes the wait of an agent. Members that end from then on are not counted. The members' own limits are
-- kept until the agent ends or leaves this wait (agent/wake_agents.lua): its next attempt can come to the same wait.
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
