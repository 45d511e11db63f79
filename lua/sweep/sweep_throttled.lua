-- sweep_throttled wakes a worker of a queue whose rate allows a task again.
--
-- @use store/index
-- @use queue/wake
local function sweep_throttled(tx, _, queue, clock)
  index.remove(tx, clock, queue)
  wake.note(tx, queue)
end
