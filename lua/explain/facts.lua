-- facts collects the facts about a live task (call/explain.lua lists them).
--
--   about, queue  lists to which it adds names and values
--
-- @use explain/ask
-- @use explain/lacks
-- @use explain/put
-- @use explain/put_fields
-- @use explain/scored
-- @use task/ancestor_end
-- @use task/is_attempt_limit

-- late returns the lags in an entry of the stream, and how many events it has.
local function late(text)
  local found, n = {}, 0
  for line in string.gmatch(text, "[^\n]+") do
    found[#found + 1] = string.match(line, " lag_ms=(%d+)")
    n = n + 1
  end
  return found, n
end

-- lags returns how many ms late each timeout among the newest 200 events was written, newest first, separated by
-- spaces. It returns nil if there are none.
local function lags(tx)
  local found, left, before = {}, 200, "+"
  while left > 0 do
    local entries = ask("XREVRANGE", tx.key.events, before, "-", "COUNT", 10) or {}
    for _, entry in ipairs(entries) do
      local values = entry[2]
      local some, n = late(values[5] == "events" and values[6] or "")
      for i = #some, 1, -1 do
        found[#found + 1] = some[i]
      end
      left, before = left - math.max(n, 1), "(" .. entry[1]
    end
    if #entries < 10 then
      break
    end
  end
  return found[1] and table.concat(found, " ")
end

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
