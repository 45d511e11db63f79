-- find_settled reads the members of this part, and ends those whose time is up. It returns those that have ended, in
-- the order they ended, or nil and an answer if a member does not exist.
--
-- @use store/record
-- @use store/live
-- @use task/load_task
-- @use agent/by_end
-- @use agent/counts_as

-- span returns the ms that a member can take: its attempt timeout, or the time to its deadline; 0 if it has neither.
local function span(attempt, deadline, created)
  return tonumber(attempt or deadline and deadline - created or 0)
end

local function find_settled(tx, s, children)
  local made, settled, ids = {}, {}, {}
  for _, child in ipairs(children) do
    made[child.task.id] = child
  end
  for _, m in ipairs(s.members) do
    if not made[m.id] then
      ids[#ids + 1] = m.id
    end
  end
  record.load(tx, ids)
  for place, m in ipairs(s.members) do
    m.place = place
    if made[m.id] then
      local d, f = made[m.id].draft, made[m.id].task.shape.fields
      m.priority, m.span = tonumber(d.priority or 0), span(f.attempt_timeout_ms, d.deadline_at, tx.at)
    else
      local task, why = load_task(tx, m.id)
      if task and not task.status then
        return nil, {"UNKNOWN", m.id}
      elseif not task and not tx.poison[m.id] then
        error("BROKEN " .. m.id .. ": " .. why, 0)
      end
      task = task or {status = "PENDING"} -- its end could not be decided: it counts as live
      m.priority, m.span = tonumber(task.priority or 0), span(task.attempt_timeout_ms, task.deadline_at, task.created_at)
      if not live(task) then
        m.ended, m.as = tonumber(task.completed_at), counts_as(m.mask or s.wait.mask, task)
        settled[#settled + 1] = m
      end
    end
  end
  by_end(settled)
  return settled
end
