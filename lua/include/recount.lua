-- recount counts the running tasks of every queue anew, by what workers hold. It is for
-- when a record is gone or ruined that was counted as running: nobody can say any more
-- in which queue, and a queue that may run only so many would run fewer for ever.
--
-- @include write
local function recount(k)
  local running = {}
  for _, worker in ipairs(write(k, "ZRANGE", k.workers, 0, -1) or {}) do
    for _, id in ipairs(write(k, "ZRANGE", k.claims .. worker, 0, -1) or {}) do
      local task = redis.pcall("HMGET", k.task .. id, "status", "queue")
      if task[1] == "RUNNING" and task[2] then
        running[task[2]] = (running[task[2]] or 0) + 1
      end
    end
  end
  for _, queue in ipairs(write(k, "SMEMBERS", k.queues) or {}) do
    local n = running[queue] or 0
    if (tonumber(write(k, "HGET", k.queue .. queue, "running")) or 0) ~= n then
      write(k, "HSET", k.queue .. queue, "running", n)
      k.woken[queue] = true
    end
  end
end
