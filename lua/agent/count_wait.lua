-- count_wait counts ends in the wait of an agent, in the order of their instants, until the wait fires. A member whose
-- time was up by then can still be live in its record, and so can a member whose own limit in the wait was over.
-- count_wait ends these members first. So the result of a wait does not depend on which call counts, or when, unless
-- more than 100 tasks of a clock are overdue (agent/overdue.lua, docs/explanation/agents.md).
--
-- A member that ended after the wait's limit is not counted: the sweep ends the wait.
--
--   w      the wait (wait/read_wait.lua)   ids   members whose end this unit has written
--   upto   count ends that were due by this instant; nil: by the latest of these ends
--
-- Returns  an instant if more members are out of time than one call can end; ends after it are not counted yet
--
-- @use store/reason
-- @use store/record
-- @use store/refused
-- @use task/put_aside
-- @use agent/add_due
-- @use agent/by_end
-- @use agent/collect
-- @use agent/count_member
-- @use agent/finish_member
-- @use agent/nearest_patience
-- @use agent/still_pending
-- @use agent/unseen
-- @use agent/watch_wait

-- written returns the members that this unit has ended, and the latest instant of these ends.
local function written(tx, id, w, ids)
  local members, latest = {}, nil
  for _, member in ipairs(ids) do
    local ended = tonumber(record.get(tx, member).completed_at)
    members[#members + 1] = {name = string.sub(member, #id + 2), id = member, ended = ended}
    latest = math.max(latest or ended, ended)
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
    if w.state ~= "open" and w.state ~= "forming" or w.ends and m.ended > w.ends then
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

-- read calls a function that reads keys which may be of the wrong type, before anything is decided. If it raises, the
-- agent is put aside.
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
