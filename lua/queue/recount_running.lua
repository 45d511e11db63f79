-- recount_running counts the running tasks of every queue anew, by what workers hold. It is for when a
-- record is gone or ruined that was counted as running: nobody can say any more in which queue, and a
-- queue that may run only so many would run fewer for ever. It looks at what has been written.
--
-- @use store/record
-- @use store/try
-- @use queue/wake
local function recount_running(tx)
  local running = {}
  tx.tasks = {}
  for _, worker in ipairs(try(tx, "ZRANGE", tx.key.workers, 0, -1) or {}) do
    local ids = try(tx, "ZRANGE", tx.key.claims .. worker, 0, -1) or {}
    record.load(tx, ids)
    for _, id in ipairs(ids) do
      local task = record.get(tx, id)
      if task and task.status == "RUNNING" then
        running[task.queue] = (running[task.queue] or 0) + 1
      end
    end
  end
  for _, queue in ipairs(try(tx, "SMEMBERS", tx.key.queues) or {}) do
    local n = running[queue] or 0
    if (tonumber(try(tx, "HGET", tx.key.queue .. queue, "running") or nil) or 0) ~= n then
      try(tx, "HSET", tx.key.queue .. queue, "running", string.format("%d", n))
      wake.note(tx, queue)
    end
  end
end
