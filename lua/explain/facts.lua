-- Where a live task is, and why.
--
-- @use explain/read: ask, put, put_fields, scored
-- @use store/record
-- @use store/state: held_set, is_attempt_limit, live, nearest
-- @use task/ending: ancestor_end

-- late reports whether a clock lacks a task, or has it at a later instant than its record.
local function late(clock, id, instant)
  local score = tonumber(ask("ZSCORE", clock, id) or nil)
  return instant and not (score and score <= tonumber(instant))
end

local function waits_in_vain(key, task)
  local f = ask("HMGET", key.wait .. task.id, "state", "wait_deadline_at", "losers") or {}
  local first = ask("ZRANGE", key.patience .. task.id, 0, 0, "WITHSCORES") or {}
  local ends, patience = tonumber(f[2]), tonumber(first[2])
  if patience and not (ends and ends <= patience) then
    ends = patience
  end
  return f[1] == "open" and late(key.waits, task.id, ends) or f[1] == "fired" and late(key.waits, task.id, math.huge)
end

-- lacks returns the names of the indexes in which a live task is missing, or stands at too late an instant; nil if there are
-- none. Such a task ends or starts only when a call reads it, and not when it is due. The line is not checked here, because
-- explain returns the task's place in it.
--
--   deadlines, limits, delayed  a clock lacks the task
--   held                        the task is held, and is not in its set, or its set is not on the list
--   owner                       the clock deadlines lacks the ancestor whose deadline ends the task
--   waits                       the clock of waits lacks the agent
--   claims                      the task is not among the claims of its worker
--   lease                       its worker has no lease
local function lacks(tx, task)
  local key, id, names = tx.key, task.id, {}
  local function note(name, missing)
    names[#names + 1] = missing and name or nil
  end
  note("deadlines", late(key.deadlines, id, task.deadline_at))
  note("limits", late(key.limits, id, nearest(task)))
  local set = held_set(task)
  note("held", set and not (ask("ZSCORE", key.held .. set, id) and ask("ZSCORE", key.holds, set)))
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

-- lags_in returns the lags in an entry of the stream, and the number of its events.
local function lags_in(text)
  local list, n = {}, 0
  for line in string.gmatch(text, "[^\n]+") do
    list[#list + 1] = string.match(line, " lag_ms=(%d+)")
    n = n + 1
  end
  return list, n
end

-- lags returns the lags in ms of the timeouts among the newest 200 events, newest first and separated by spaces; nil if there
-- are none.
local function lags(tx)
  local list, left, before = {}, 200, "+"
  while left > 0 do
    local entries = ask("XREVRANGE", tx.key.events, before, "-", "COUNT", 10) or {}
    for _, entry in ipairs(entries) do
      local values = entry[2]
      local some, n = lags_in(values[5] == "events" and values[6] or "")
      for i = #some, 1, -1 do
        list[#list + 1] = some[i]
      end
      left, before = left - math.max(n, 1), "(" .. entry[1]
    end
    if #entries < 10 then
      break
    end
  end
  return list[1] and table.concat(list, " ")
end

-- tell_queue adds how many live workers the partition has, the length of a task's line, and what its queue can give now.
local function tell_queue(tx, task, about, queue)
  put(about, "workers", ask("ZCOUNT", tx.key.workers, tx.now, "+inf"))
  put(about, "lined", ask("ZCARD", tx.key.ready .. task.queue))
  put_fields(queue, tx.key.queue .. task.queue, {"paused", "running", "max_running", "max_length", "rate", "per_ms", "burst", "full_at"})
end

-- facts collects the facts about a live task (call/explain.lua lists them).
--
--   about, queue  lists to which it adds names and values
local function facts(tx, task, about, queue)
  local key = tx.key
  local doom, ancestor = ancestor_end(tx, task.id)
  put(about, "doomed_by", ancestor)
  put(about, "doomed_at", doom and string.format("%d", doom))
  local limit = task.limit_at
  if limit and (tonumber(limit) or tx.at) < tx.at and is_attempt_limit(task) then
    put(about, "attempt_over", limit)
  end
  put(about, "lacks", lacks(tx, task))
  put(about, "lags", lags(tx))
  put_fields(about, key.root, {"turn_until"})
  if task.status == "PENDING" and not task.role and not task.available_at and not task.held then
    put(about, "ahead", ask("ZRANK", key.ready .. task.queue, task.id)) -- a suspect has none, but its queue can keep it back too
    tell_queue(tx, task, about, queue)
    return
  end
  put(about, "workers", ask("ZCOUNT", key.workers, tx.now, "+inf"))
  if task.status == "RUNNING" and task.worker then
    put(about, "lease", scored(key.workers, task.worker))
  end
end

local wait_fields = {"state", "entry", "mode", "label", "why", "ok", "bad", "settled", "size", "need_ok", "most_bad", "all",
  "wait_deadline_at", "limit_ms", "since", "reason"}
local member_fields = {"deadline_at", "until", "limit_at", "available_at", "role", "grace_at", "cancel_grace_ms", "status"}
local instants = {"deadline_at", "until", "limit_at", "grace_at", "available_at"}

-- due reports whether one of a member's instants has passed. Only then can its end be decided, so explain skips the others.
local function due(tx, task)
  for _, name in ipairs(instants) do
    if task[name] and (tonumber(task[name]) or tx.at) <= tx.at then
      return true
    end
  end
end

local function tell_member(tx, member, id, decided)
  local broken = scored(tx.key.broken, id)
  local task, fault = record.get(tx, id)
  if not task then
    put(member, "broken", broken or fault)
    return
  end
  put(member, "broken", broken)
  for _, name in ipairs(member_fields) do
    put(member, name, task[name])
  end
  put(member, "lacks", live(task) and lacks(tx, task))
  if live(task) and due(tx, task) then
    local over
    over, fault = decided(tx, task)
    put(member, "over_at", over and string.format("%d", over.completed_at))
    put(member, "broken", not broken and fault)
  end
end

-- pending returns the names and places of the next members, and the number of those that have not ended.
local function pending(tx, id, page)
  local key, from = tx.key.pending .. id, page.from
  return ask("ZRANGEBYSCORE", key, from == "" and "-inf" or "(" .. from, "+inf", "WITHSCORES", "LIMIT", 0, page.most) or {}, ask("ZCARD", key)
end

-- children returns the names and places of the next children, and the number of those that have not ended. Ended children
-- are either counted as received or in the list (wait/ends.lua).
local function children(tx, id, page)
  local some, agent, first = {}, record.get(tx, id), page.from == "" and 0 or tonumber(page.from) + 1
  for i, child in ipairs(ask("LRANGE", tx.key.children .. id, first, first + page.most - 1) or {}) do
    some[2 * i - 1], some[2 * i] = string.sub(child, #id + 2), first + i - 1
  end
  local open = tonumber(agent.children or 0) - tonumber(agent.collects or 0) - (ask("LLEN", tx.key.ends .. id) or 0)
  return some, string.format("%d", math.max(open, 0))
end

-- tell_wait adds the wait of an agent and its next pending members. The members of a wait of the mode collect are all
-- children, ended or not.
--
--   wait     the list that gets names and values
--   answers  the list that gets a list for each member
--   page     from: the place behind which to continue, "" at first; most: the largest number of members; decided: a function
--            that returns the end of a task whose time is up (call/explain.lua)
local function tell_wait(tx, id, page, wait, answers)
  local key = tx.key
  local collects = put_fields(wait, key.wait .. id, wait_fields).mode == "collect"
  if page.from == "" then
    put_fields(wait, key.wait .. id, {"members"})
  end
  local some, left = (collects and children or pending)(tx, id, page)
  put(wait, "pending", left)
  local own, ids = {"mask"}, {}
  for i = 1, #some, 2 do
    own[#own + 1], ids[#ids + 1] = "mask " .. some[i], id .. "." .. some[i]
  end
  local masks = ask("HMGET", key.wait .. id, unpack(own)) or {}
  record.load(tx, ids)
  for i = 1, #some, 2 do
    local name = some[i]
    local member = {"place", string.format("%d", tonumber(some[i + 1])), "name", name}
    put(member, "mask", masks[(i + 3) / 2] or masks[1])
    put(member, "patience", scored(key.patience .. id, name))
    tell_member(tx, member, id .. "." .. name, page.decided)
    answers[#answers + 1] = member
  end
end
