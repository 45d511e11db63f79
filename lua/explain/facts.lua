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
-- @use task/ancestor_end
-- @use task/is_attempt_limit

local function facts(tx, task, about, queue)
  local key = tx.key
  local ended, ancestor = ancestor_end(tx, task.id)
  put(about, "doomed_by", ancestor)
  put(about, "doomed_at", ended and string.format("%d", ended))
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
