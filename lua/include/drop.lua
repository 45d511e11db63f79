-- drop forgets the wait that an agent is at. Members that end from then on count for
-- nothing. What each member had of patience stays until the agent's end, or until it
-- has come past this wait (conclude.lua): it may come to it again.
local function drop(k, task)
  redis.call("UNLINK", k.wait .. task.id, k.pending .. task.id, k.settled .. task.id)
  redis.call("HDEL", k.task .. task.id, "waiting")
  task.waiting = nil
  k.kin[task.id] = nil
end
