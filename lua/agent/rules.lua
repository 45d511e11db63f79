-- The rules by which a wait fires, from the ends of its members.
--
-- @use store/record
-- @use store/state: live

-- thresholds returns the three counts at which a wait of n members fires: successful, failed, and all ended members. The
-- third is at most n, so that the last end always fires the wait. For an invalid field, the fourth and fifth value are the
-- field and the error.
--
--   mode  all, settled   the last member
--         fail_fast      the last, or the first that is bad
--         any            the first, however it ended
--         any_ok         the first that is ok
--         n_of_m         `need` that are ok, or fewer than `need` can still be ok
--         n_settled      `need` of them, however they ended
--         peek           at once
--         collect        the first end of any child that the agent has not received yet; no members (wait/ends.lua)
local function thresholds(mode, n, need)
  if mode == "all" or mode == "settled" then
    return nil, nil, n
  elseif mode == "fail_fast" then
    return nil, n > 0 and 1 or nil, n
  elseif mode == "peek" then
    return nil, nil, 0
  elseif mode == "collect" then
    if n > 0 then
      return nil, nil, nil, "mode", "is for all children of the agent, without members: leave them out"
    end
    return nil, nil, 1
  elseif mode == "any" or mode == "any_ok" then
    if n == 0 then
      return nil, nil, nil, "members", (mode == "any" and "select" or "select_ok") .. " requires at least one future"
    elseif mode == "any" then
      return nil, nil, 1
    end
    return 1, nil, n
  elseif mode == "n_of_m" or mode == "n_settled" then
    if not need or need > n then
      return nil, nil, nil, "need", "must be a whole number from 0 to " .. n .. ", the number of different members"
    elseif mode == "n_settled" then
      return nil, nil, need
    elseif need == 0 then
      return nil, nil, 0
    end
    return need, n - need + 1, n
  end
  return nil, nil, nil, "mode", "must be all, fail_fast, settled, any, any_ok, n_of_m, n_settled, peek or collect"
end

-- fires returns "satisfied", "impossible" if the pending members can no longer satisfy the wait, or nil if it does not fire
-- yet.
--
--   w  ok, bad, settled        counters
--      need_ok, most_bad, all  thresholds; nil for one that the mode does not use
local function fires(w)
  if w.need_ok and w.ok >= w.need_ok then
    return "satisfied"
  elseif w.most_bad and w.bad >= w.most_bad then
    return "impossible"
  elseif w.settled >= w.all then
    return w.need_ok and "impossible" or "satisfied"
  end
end

-- counts_as returns whether an ended member counts as ok ("o"), bad ("b") or neither ("n"). The mask has one letter for each
-- way to end: completed, error, failed (no retry), timeout, cancelled. A task with on_deadline fail counts as failed when
-- its own time is up, which only its error text shows (task/ending.lua).
local function counts_as(mask, task)
  local place, reason = 2, task.reason
  if task.status == "COMPLETED" then
    place = 1
  elseif task.status == "CANCELLED" then
    place = 5
  elseif reason == "failed" or task.timeout_type and task.error == "Workflow exceeded timeout" then
    place = 3
  elseif reason == "timeout" then
    place = 4
  end
  return string.sub(mask, place, place)
end

-- in_time reports whether an end counts in a wait with this limit, nil for none. An end after the limit does not count, also if
-- nobody has noticed that the wait is over.
local function in_time(limit, ended_at)
  return not limit or ended_at <= limit
end

-- is_fired reports whether an end is that of a timer that has fired, or fires with this end.
local function is_fired(task, over)
  return task.role == "timer" and over.status == "COMPLETED" and not over.call
end

-- by_end sorts members by the instant of their end. In one ms timers come first (task/ending.lua), then the order of the wait
-- decides.
local function by_end(members)
  table.sort(members, function(a, b)
    if a.ended_at ~= b.ended_at then
      return a.ended_at < b.ended_at
    elseif a.fired ~= b.fired then
      return a.fired
    end
    return a.place < b.place
  end)
end

-- first_end returns the task that ended first and the instant, or nil if none has ended.
local function first_end(tx, ids)
  local first, at = nil, nil
  record.load(tx, ids)
  for _, id in ipairs(ids) do
    local task = record.get(tx, id)
    local ended_at = task and task.status and not live(task) and tonumber(task.completed_at)
    if ended_at and (not at or ended_at < at) then
      first, at = id, ended_at
    end
  end
  return first, at
end

-- verdict formats the journal entry of a fired wait: the reason, the deciding member, the instant, digest and label of the
-- wait, its members, and the ended members in the order of their ends. It is computed once and stored, so that every
-- replay of the agent reads the same result.
local function verdict(w, reason, winner, instant, settled)
  return "wait " .. reason .. " " .. (winner or "-") .. " " .. string.format("%d", instant) .. " " .. w.digest .. "\n" ..
    w.label .. "\n" .. w.members .. "\n" .. table.concat(settled, " ")
end
