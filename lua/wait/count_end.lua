-- count_end counts a member's end in the wait that its owner is at. It costs the same whatever the number
-- of members. An end counts once, and only that of a member that the wait still has.
--
-- What ended after the wait's limit is not counted, whoever is seen first: the sweep ends the wait. A wait
-- that fires is noted, and wake_agents wakes the owner. What is wrong with the wait is no fault of the
-- member.
--
-- @use store/refused
-- @use store/alarm
-- @use store/index
-- @use store/later
-- @use store/own
-- @use store/reason
-- @use task/put_aside
-- @use wait/counts_as
-- @use wait/fires
-- @use wait/nearest_patience
-- @use wait/read_wait
-- @use wait/watch_wait

-- start_limit begins a limit that runs from the first end.
local function start_limit(tx, task, w, id)
  w.first_at = task.completed_at
  w.ends = tonumber(task.completed_at) + w.limit_ms
  if w.state == "open" then
    alarm.note(tx, watch_wait(tx, id, w.ends, nearest_patience(tx, id)))
  end
end

local function count_member(tx, task, w, id)
  local name = string.sub(task.id, #id + 2)
  local state, ends, ended = w.state, w.ends, tonumber(task.completed_at)
  if state ~= "open" and state ~= "forming" or ends and ended > ends or w.gone[name] or
    not redis.call("ZSCORE", tx.key.pending .. id, name) then
    return
  end
  local mask = w.masks and redis.call("HGET", tx.key.wait .. id, "mask " .. name) or w.mask
  local as = counts_as(mask, task)
  local limited = w.limit_ms and not ends and not w.first_at
  if limited and state == "open" then
    nearest_patience(tx, id) -- it must be readable before anything is decided
  end
  w.gone[name], w.changed = true, true
  index.remove(tx, tx.key.pending .. id, name)
  later.push(tx, tx.key.settled .. id, name)
  w.names[#w.names + 1], w.settled = name, w.settled + 1
  w.ok, w.bad = w.ok + (as == "o" and 1 or 0), w.bad + (as == "b" and 1 or 0)
  local how = state == "open" and fires(w)
  if how then
    w.state, w.reason, w.winner = "fired", how, name
    local fired = own(tx, "fired")
    fired[#fired + 1] = id
  end
  if limited then
    start_limit(tx, task, w, id)
  end
end

local function count_end(tx, task, owner)
  local w, why = read_wait(tx, owner.id)
  local ok = w ~= nil
  if ok then
    ok, why = pcall(count_member, tx, task, w, owner.id)
  end
  if not ok and refused(why) then
    error(why, 0)
  elseif not ok then
    put_aside(tx, owner.id, reason(why), {tx.key.waits})
  end
end
