-- count_member counts the end of a member that is pending in a wait. Its cost does not depend on the number of members.
-- If the wait fires, the owner is added to tx.fired, and wake_agents wakes it.
--
--   task  the member, which has ended   w  the wait (wait/read_wait.lua)   id  of its owner
--
-- @use store/alarm
-- @use store/index
-- @use store/later
-- @use store/own
-- @use agent/counts_as
-- @use agent/fires
-- @use agent/nearest_patience
-- @use agent/watch_wait

-- start_limit starts a limit that begins with the first end, at the instant of that end.
local function start_limit(tx, w, id, ended)
  w.first_at = string.format("%d", ended)
  w.ends = ended + w.limit_ms
  if w.state == "open" then
    alarm.note(tx, watch_wait(tx, id, w.ends, nearest_patience(tx, id)))
  end
end

local function count_member(tx, task, w, id)
  local name = string.sub(task.id, #id + 2)
  local ended = math.max(tonumber(task.completed_at), w.since or 0)
  local mask = w.masks and redis.call("HGET", tx.key.wait .. id, "mask " .. name) or w.mask
  local as = counts_as(mask, task)
  w.gone[name], w.changed = true, true
  index.remove(tx, tx.key.pending .. id, name)
  later.push(tx, tx.key.settled .. id, name)
  w.names[#w.names + 1], w.settled = name, w.settled + 1
  w.ok, w.bad = w.ok + (as == "o" and 1 or 0), w.bad + (as == "b" and 1 or 0)
  local how = w.state == "open" and fires(w)
  if how then
    w.state, w.reason, w.winner, w.fired_at = "fired", how, name, ended
    local fired = own(tx, "fired")
    fired[#fired + 1] = id
  end
  if w.limit_ms and not w.ends and not w.first_at then
    start_limit(tx, w, id, ended)
  end
end
