-- Counting the ends of members in the waits of their owners, in the order of their instants.
--
-- @use agent/rules: by_end, counts_as, fires, first_end, in_time, is_fired
-- @use store/index
-- @use store/later
-- @use store/messages: alarm
-- @use store/record
-- @use store/state: live, owner
-- @use store/try: attempt, reason, refused
-- @use store/tx: memo
-- @use task/ending: cancelled, ending
-- @use task/finish: cancel_task, load_task
-- @use task/place: put_aside
-- @use wait/wait: fire

-- nearest_patience returns the earliest limit of a single member in an agent's wait, or nil. It raises an error if the key has
-- the wrong type.
local function nearest_patience(tx, id)
  local key = tx.key.patience .. id
  local some = redis.call("ZRANGE", key, 0, index.removals(tx, key), "WITHSCORES")
  for i = 1, #some, 2 do
    if not index.removed(tx, key, some[i]) then
      return tonumber(some[i + 1])
    end
  end
end

-- watch_wait schedules the sweep of a wait for its limit or the nearest limit of a member, whichever is first.
--
--   ends  the limit of the wait, or nil   patience  the nearest limit of a member, or nil
--
-- Returns the instant, or nil
local function watch_wait(tx, id, ends, patience)
  local first = ends
  if patience and not (first and first <= patience) then
    first = patience
  end
  if first then
    index.add(tx, tx.key.waits, string.format("%d", first), id)
  else
    index.remove(tx, tx.key.waits, id)
  end
  return first
end

-- cancel_member cancels a member that its wait no longer needs. A signal is not cancelled, because it can still be sent.
--
--   cause    not_needed: the wait is decided; wait_timeout: its limit has passed; patience: the member's own
--            limit in the wait has passed
--   instant  the instant of the end, if it is in the past; nil: now
local function cancel_member(tx, id, cause, instant)
  local before = tx.on
  tx.on = id -- if deciding raises, the member is at fault and not its agent
  local task = load_task(tx, id)
  if task and live(task) and not (task.role and string.find(id, "%.s%-[^.]*$")) then
    local needed = cause ~= "not_needed"
    local over = cancelled(needed and "Wait timed out" or "No longer needed", nil, needed and "wait_timeout" or cause)
    over.completed_at = instant
    cancel_task(tx, task, over, over.error)
  end
  tx.on = before
end

local most = 100

-- overdue returns the children on the clocks whose instant has passed, by owner. A unit reads the first 100 ids of each clock,
-- once.
local function overdue(tx)
  local cache = memo(tx, "overdue")
  if cache.children then
    return cache.children
  end
  local children = {}
  cache.children = children
  for _, clock in ipairs({"deadlines", "limits", "delayed"}) do
    local bound = (clock == "delayed" and "" or "(") .. tx.now -- a timer fires at its instant, other tasks end after theirs
    for _, id in ipairs(attempt("ZRANGEBYSCORE", tx.key[clock], "-inf", bound, "LIMIT", 0, most)) do
      local up = owner(id)
      if up then
        children[up] = children[up] or {}
        children[up][id] = true
      end
    end
  end
  return children
end

-- unseen returns the members whose time was up by an instant, and whose end is not written yet.
local function unseen(tx, id, upto)
  local before, ids, members = tx.on, {}, {}
  for member in pairs(overdue(tx)[id] or {}) do
    ids[#ids + 1] = member
  end
  record.load(tx, ids)
  for _, member in ipairs(ids) do
    tx.on = member -- if deciding raises, the member is at fault and not its agent
    local task = record.get(tx, member)
    local over = task and live(task) and ending(tx, task)
    if over and over.completed_at <= upto then
      members[#members + 1] = {name = string.sub(member, #id + 2), id = member, ended_at = over.completed_at, fired = is_fired(task, over)}
    end
  end
  tx.on = before
  return members
end

-- end_due ends the children of an agent whose time was up by an instant, in the order of their ends. It returns their ids.
local function end_due(tx, id, upto)
  local before, due, ids = tx.on, unseen(tx, id, upto), {}
  table.sort(due, function(a, b)
    if a.ended_at ~= b.ended_at then
      return a.ended_at < b.ended_at
    elseif a.fired ~= b.fired then
      return a.fired
    end
    return a.id < b.id
  end)
  for i, m in ipairs(due) do
    tx.on = m.id
    load_task(tx, m.id)
    ids[i] = m.id
  end
  tx.on = before
  return ids
end

-- drop_patience removes a member's own limit in a wait, so that the limit ends the member only once.
local function drop_patience(tx, id, w, name)
  w.rewatch = true
  index.remove(tx, tx.key.patience .. id, name)
end

-- still_pending drops members that are not pending in the wait, and sets the place of the others.
local function still_pending(tx, id, w, members)
  local kept = {}
  for _, m in ipairs(members) do
    local score = not w.gone[m.name] and redis.call("ZSCORE", tx.key.pending .. id, m.name)
    if score then
      m.place = score % 16777216
      kept[#kept + 1] = m
    elseif m.patience then
      drop_patience(tx, id, w, m.name)
    end
  end
  return kept
end

-- impatient returns the members whose own limit in the wait had passed by an instant, up to the number that the call may still
-- cancel. If there are more, it also returns the limit of the last member in the list.
local function impatient(tx, id, upto)
  local key, bound, members = tx.key.patience .. id, string.format("%d", math.min(upto, tx.at - 1)), {}
  local most = tx.left.cancel + index.removals(tx, key) + 1
  local due = redis.call("ZRANGEBYSCORE", key, "-inf", bound, "WITHSCORES", "LIMIT", 0, most)
  for i = 1, #due, 2 do
    if not index.removed(tx, key, due[i]) then
      if #members == tx.left.cancel then
        return members, members[1] and members[#members].ended_at or 0
      end
      members[#members + 1] = {name = due[i], id = id .. "." .. due[i], ended_at = tonumber(due[i + 1]), fired = false, patience = true}
    end
  end
  return members
end

-- finish_member ends a member whose time is up. It returns the task if it has ended.
local function finish_member(tx, id, w, m)
  if m.patience then
    tx.left.cancel = tx.left.cancel - 1
    drop_patience(tx, id, w, m.name)
    cancel_member(tx, m.id, "patience", m.ended_at)
  else
    local before = tx.on
    tx.on = m.id
    load_task(tx, m.id)
    tx.on = before
  end
  if m.impatient then -- its limit must not end it a second time
    drop_patience(tx, id, w, m.name)
  end
  local task = record.get(tx, m.id)
  return task and task.status and not live(task) and task
end

-- start_limit starts a limit that begins with the first end, at the instant of that end.
local function start_limit(tx, w, id, ended_at)
  w.first_at = string.format("%d", ended_at)
  w.ends = ended_at + w.limit_ms
  if w.state == "open" then
    alarm.note(tx, watch_wait(tx, id, w.ends, nearest_patience(tx, id)))
  end
end

-- count_member counts the end of a member that is pending in a wait. Its cost does not depend on the number of members.
-- If the wait fires, the owner is noted (fire), and wake_agents wakes it.
--
--   task  the member, which has ended   w  the wait (wait/wait.lua)   id  of its owner
local function count_member(tx, task, w, id)
  local name = string.sub(task.id, #id + 2)
  local ended_at = math.max(tonumber(task.completed_at), w.since or 0)
  local mask = w.masks and redis.call("HGET", tx.key.wait .. id, "mask " .. name) or w.mask
  local as = counts_as(mask, task)
  w.gone[name], w.changed = true, true
  index.remove(tx, tx.key.pending .. id, name)
  later.push(tx, tx.key.settled .. id, name)
  w.names[#w.names + 1], w.settled = name, w.settled + 1
  w.ok, w.bad = w.ok + (as == "o" and 1 or 0), w.bad + (as == "b" and 1 or 0)
  local how = w.state == "open" and fires(w)
  if how then
    w.state, w.reason, w.winner, w.fired_at = "fired", how, name, ended_at
    fire(tx, id)
  end
  if w.limit_ms and not w.ends and not w.first_at then
    start_limit(tx, w, id, ended_at)
  end
end

-- collect decides an open wait of the mode collect, which is over with the first end of any child of the agent. Its cost
-- does not depend on the number of children. Children whose time was up by then end first, so that one wait hands over
-- all ends up to that instant, whoever looks when.
--
--   written  children whose end this unit has written, and added to the ends (wait/ends.lua)
--   upto     children that were due by this instant end too; nil: by the latest of these ends
local function collect(tx, id, w, written, upto)
  local ids, latest = {}, nil
  for _, child in ipairs(written) do
    ids[#ids + 1], latest = child, math.max(latest or 0, tonumber(record.get(tx, child).completed_at))
  end
  upto = upto or latest
  if w.state ~= "open" or not upto then
    return
  end
  for _, child in ipairs(end_due(tx, id, upto)) do
    ids[#ids + 1] = child
  end
  local first, at = first_end(tx, ids)
  if first and in_time(w.ends, at) then
    w.state, w.reason, w.winner, w.changed = "fired", "satisfied", string.sub(first, #id + 2), true
    w.fired_at = math.max(at, w.since or 0)
    fire(tx, id)
  end
end

-- add_due adds overdue members to the members that have ended. They end later, in the order of all instants.
--
--   due  late: members whose own time is up; upto: the instant up to which limits in the wait are checked
--
-- Returns  the members, and an instant if more members are overdue than one call can end
local function add_due(tx, id, w, members, due)
  local more, last
  if w.patient then
    more, last = impatient(tx, id, due.upto)
  end
  local by_name, added = {}, {}
  for _, m in ipairs(members) do
    by_name[m.name] = m
  end
  for _, m in ipairs(due.late) do
    if not last or m.ended_at <= last then
      by_name[m.name], added[#added + 1] = m, m
    end
  end
  for _, m in ipairs(more or {}) do
    local same = by_name[m.name]
    if same and same.ended_at <= m.ended_at or same and not live(record.get(tx, m.id)) then
      same.impatient = true
    else
      added[#added + 1] = m
    end
  end
  for _, m in ipairs(still_pending(tx, id, w, added)) do
    members[#members + 1] = m
  end
  return members, last
end

-- written returns the members that this unit has ended, and the latest instant of these ends.
local function written(tx, id, w, ids)
  local members, latest = {}, nil
  for _, member in ipairs(ids) do
    local task = record.get(tx, member)
    local ended_at = tonumber(task.completed_at)
    members[#members + 1] = {name = string.sub(member, #id + 2), id = member, ended_at = ended_at, fired = is_fired(task, task)}
    latest = math.max(latest or ended_at, ended_at)
  end
  if w.limit_ms and not w.first_at then
    nearest_patience(tx, id) -- raises here, before anything is decided, if the key is of the wrong type
  end
  return still_pending(tx, id, w, members), latest
end

-- count counts members, by their instants.
local function count(tx, id, w, members)
  by_end(members)
  for _, m in ipairs(members) do
    if w.state ~= "open" and w.state ~= "forming" or not in_time(w.ends, m.ended_at) then
      break
    end
    local task = not w.gone[m.name] and finish_member(tx, id, w, m)
    if task then
      count_member(tx, task, w, id)
    end
  end
  if w.rewatch and w.state == "open" then
    watch_wait(tx, id, w.ends, nearest_patience(tx, id))
  end
end

-- read calls a function that may raise an error for a key of the wrong type. It is called before any decision, so that the
-- agent can be put aside with nothing half done.
local function read(tx, id, f, ...)
  local ok, members, instant = pcall(f, tx, id, ...)
  if not ok and refused(members) then
    error(members, 0)
  elseif not ok then
    put_aside(tx, id, reason(members), {tx.key.waits})
    return nil
  end
  return members, instant
end

-- count_wait counts ends in the wait of an agent, in the order of their instants, until the wait fires. A member whose
-- time was up by then can still be live in its record, and so can a member whose own limit in the wait was over.
-- count_wait ends these members first. So the result of a wait does not depend on which call counts, or when, unless
-- more than 100 tasks of a clock are overdue (docs/explanation/agents.md).
--
-- A member that ended after the wait's limit is not counted, because the sweep ends the wait by its limit.
--
--   w      the wait (wait/wait.lua)   ids   members whose end this unit has written
--   upto   count ends that were due by this instant; nil: by the latest of these ends
--
-- Returns  an instant if more members are overdue than one call can end; ends after it are not counted yet
local function count_wait(tx, id, w, ids, upto)
  if w.mode == "collect" then
    return collect(tx, id, w, ids, upto)
  end
  local members, last = read(tx, id, written, w, ids)
  if not members or not members[1] and not upto then
    return nil
  end
  upto = upto or last
  if w.state == "open" and w.settled + #members < w.size then -- others may be pending
    members, last = read(tx, id, add_due, w, members, {late = unseen(tx, id, upto), upto = upto})
  else
    last = nil
  end
  if members then
    count(tx, id, w, members)
  end
  return last
end
