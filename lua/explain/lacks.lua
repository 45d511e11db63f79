-- lacks names the indexes in which a live task is missing, or has too late an instant. What its record says then
-- happens only when a call reads the task. It returns nil if no index lacks it. The line is not checked here: the
-- place of the task in it shows whether it is there.
--
--   deadlines, limits, delayed  the clocks of its own instants    owner    that of the deadline of its owner
--   claims                      its worker does not hold it       lease    its worker has no lease
--   waits                       the clock of its wait
--
-- @use explain/ask
-- @use store/record
-- @use store/live
-- @use task/nearest

-- late reports whether a clock lacks a task, or has it later than instant. It is false if instant is nil.
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
