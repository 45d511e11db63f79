-- facts collects the facts about a live task (call/explain.lua lists them).
--
--   about, queue  lists to which it adds names and values
--
-- @use explain/ask
-- @use explain/lacks
-- @use explain/lags
-- @use explain/put
-- @use explain/put_fields
-- @use explain/scored
-- @use task/drained
-- @use task/is_attempt_limit
-- @use task/owner

-- doomed adds the ancestor whose end ends the task: the first that ended, of equal instants the outermost.
local function doomed(tx, id, about)
  local first, by
  local up = owner(id)
  while up do
    local ended = drained(tx, up)
    if ended and not (first and first < ended) then
      first, by = ended, up
    end
    up = owner(up)
  end
  put(about, "doomed_by", by)
  put(about, "doomed_at", first and string.format("%d", first))
end

local function facts(tx, task, about, queue)
  local key = tx.key
  doomed(tx, task.id, about)
  local limit = task.limit_at
  if limit and (tonumber(limit) or tx.at) < tx.at and is_attempt_limit(task) then
    put(about, "attempt_over", limit)
  end
  put(about, "lacks", lacks(tx, task))
  put(about, "lags", lags(tx))
  put_fields(about, key.root, {"turn_until"})
  put(about, "workers", ask("ZCOUNT", key.workers, tx.now, "+inf"))
  if task.status == "RUNNING" and task.worker then
    put(about, "lease", scored(key.workers, task.worker))
  elseif task.status == "PENDING" and not task.role and not task.available_at then
    put(about, "ahead", ask("ZRANK", key.ready .. task.queue, task.id))
    put(about, "lined", ask("ZCARD", key.ready .. task.queue))
    put_fields(queue, key.queue .. task.queue, {"paused", "running", "max_running", "rate", "per_ms", "burst", "full_at"})
  end
end
