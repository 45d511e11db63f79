-- count_wait counts ends in the wait of an agent, in the order of their instants and up to where it fires. Members
-- whose time was up by then, and whose end nobody has written yet, end first, and so do those whose limit of their
-- own in the wait was over. So what a wait comes to does not depend on who looks when.
--
-- What ended after the wait's limit is not counted: the sweep ends the wait.
--
--   w      the wait (wait/read_wait.lua)   ids   members whose end this unit has written
--   upto   count what was due by this instant; nil: by the latest of these ends
--
-- Returns  an instant if more members are out of time than one call may end; what is behind it was not looked at
--
-- @use store/index
-- @use store/reason
-- @use store/record
-- @use store/refused
-- @use task/live
-- @use task/load_task
-- @use task/put_aside
-- @use wait/by_end
-- @use wait/cancel_member
-- @use wait/count_member
-- @use wait/impatient
-- @use wait/nearest_patience
-- @use wait/unseen
-- @use wait/watch_wait

-- drop_patience has a limit of a member's own come once.
local function drop_patience(tx, id, w, name)
  w.rewatch = true
  index.remove(tx, tx.key.patience .. id, name)
end

-- pending are the ones of some members that the wait still has, with their places in it.
local function pending(tx, id, w, members)
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

-- written are the members that this unit has ended, and the instant of the latest of these ends.
local function written(tx, id, w, ids)
  local members, latest = {}, nil
  for _, member in ipairs(ids) do
    local ended = tonumber(record.get(tx, member).completed_at)
    members[#members + 1] = {name = string.sub(member, #id + 2), id = member, ended = ended}
    latest = math.max(latest or ended, ended)
  end
  if w.limit_ms and not w.first_at then
    nearest_patience(tx, id) -- it must be readable before anything is decided
  end
  return pending(tx, id, w, members), latest
end

-- add_due adds the members that end first to those that have ended.
local function add_due(tx, id, w, members, late, upto)
  local more, last
  if w.patient then
    more, last = impatient(tx, id, upto)
  end
  local known, due = {}, {}
  for _, m in ipairs(members) do
    known[m.name] = m
  end
  for _, m in ipairs(late) do
    if not last or m.ended <= last then
      known[m.name], due[#due + 1] = m, m
    end
  end
  for _, m in ipairs(more or {}) do
    local same = known[m.name]
    if same and same.ended <= m.ended or same and not live(record.get(tx, m.id)) then
      same.impatient = true
    else
      due[#due + 1] = m
    end
  end
  for _, m in ipairs(pending(tx, id, w, due)) do
    members[#members + 1] = m
  end
  return members, last
end

-- finished ends a member whose time is up, and tells whether it has ended.
local function finished(tx, id, w, m)
  if m.patience then
    tx.may_cancel = tx.may_cancel - 1
    drop_patience(tx, id, w, m.name)
    cancel_member(tx, m.id, "patience", m.ended)
  else
    local before = tx.on
    tx.on = m.id
    load_task(tx, m.id)
    tx.on = before
  end
  if m.impatient then -- by now it has ended for that, or before
    drop_patience(tx, id, w, m.name)
  end
  local task = record.get(tx, m.id)
  return task and task.status and not live(task) and task
end

-- count counts members, by their instants.
local function count(tx, id, w, members)
  by_end(members)
  for _, m in ipairs(members) do
    if w.state ~= "open" and w.state ~= "forming" or w.ends and m.ended > w.ends then
      break
    end
    local task = not w.gone[m.name] and finished(tx, id, w, m)
    if task then
      count_member(tx, task, w, id)
    end
  end
  if w.rewatch and w.state == "open" then
    watch_wait(tx, id, w.ends, nearest_patience(tx, id))
  end
end

-- read calls a function that reads what may be of the wrong type, before anything is decided.
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

local function count_wait(tx, id, w, ids, upto)
  local members, last = read(tx, id, written, w, ids)
  if not members or not members[1] and not upto then
    return nil
  end
  upto = upto or last
  if w.state == "open" and w.settled + #members < w.size then -- others may be pending
    members, last = read(tx, id, add_due, w, members, unseen(tx, id, upto), upto)
  else
    last = nil
  end
  if members then
    count(tx, id, w, members)
  end
  return last
end
