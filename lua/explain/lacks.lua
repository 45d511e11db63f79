-- lacks names the indexes in which a live task is missing, or stands too late, so that what its record says comes to
-- pass only when a call meets it; nil if no index lacks it. Whether its line has it is told by its place in the line.
--
--   deadlines, limits, delayed  the clocks of its own instants    owner    that of the deadline of its owner
--   claims                      its worker does not hold it       lease    its worker is in no list of those that live
--   waits                       the clock of its wait
--
-- @use explain/ask
-- @use store/record
-- @use task/live
-- @use task/nearest

-- late tells whether a clock has nothing of a task by an instant.
local function late(clock, id, instant)
  local score = tonumber(ask("ZSCORE", clock, id) or nil)
  return instant and not (score and score <= tonumber(instant))
end

local function waits_in_vain(key, task)
  local f = ask("HMGET", key.wait .. task.id, "state", "wait_deadline_at", "losers") or {}
  local first = ask("ZRANGE", key.patience .. task.id, 0, 0, "WITHSCORES") or {}
  local ends, patience = tonumber(f[2] or nil), tonumber(first[2] or nil)
  if patience and not (ends and ends <= patience) then
    ends = patience
  end
  return f[1] == "open" and late(key.waits, task.id, ends) or f[1] == "fired" and late(key.waits, task.id, math.huge)
end

local function lacks(tx, task)
  local key, id, names = tx.key, task.id, {}
  local function note(name, missing)
    names[#names + 1] = missing and name or nil
  end
  note("deadlines", late(key.deadlines, id, task.deadline_at))
  note("limits", late(key.limits, id, nearest(task)))
  note("delayed", task.status == "PENDING" and late(key.delayed, id, task.available_at))
  local above = task["until"] and task.until_of and record.get(tx, task.until_of)
  note("owner", above and live(above) and late(key.deadlines, above.id, above.deadline_at))
  if task.status == "RUNNING" and task.worker then
    note("claims", not ask("ZSCORE", key.claims .. task.worker, id))
    note("lease", not ask("ZSCORE", key.workers, task.worker))
  elseif task.status == "WAITING" then
    note("waits", waits_in_vain(key, task))
  end
  return names[1] and table.concat(names, " ") or nil
end
