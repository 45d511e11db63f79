-- sweep_limits does what is due of one task on the clock of deadlines, or on the clock of limits (task/nearest.lua).
-- The record decides: if the task lives on, the clock gets its next instant.
--
-- @use store/emit
-- @use store/index
-- @use store/record
-- @use sweep/did
-- @use sweep/leave_clock
-- @use sweep/met_broken
-- @use task/final
-- @use store/live
-- @use task/load_task
-- @use task/nearest

-- warn writes the event deadline_near, once for each task.
local function warn(tx, r, task)
  local last = final(task)
  emit(tx, "terminal", "deadline_near", task, "deadline_at=" .. string.format("%d", last) ..
    " left_ms=" .. string.format("%d", math.max(last - tx.at, 0)) .. " status=" .. task.status)
  record.set(tx, task, "warn_at", nil)
  did(r, "warned")
end

local function sweep_limits(tx, r, id, clock)
  local task, why = load_task(tx, id)
  if not task then
    met_broken(tx, r, clock, id, why)
    return
  end
  local score
  if live(task) then
    if task.warn_at and tonumber(task.warn_at) < tx.at then
      warn(tx, r, task)
    end
    score = clock == tx.key.deadlines and task.deadline_at or clock == tx.key.limits and nearest(task)
  end
  if score then
    index.add(tx, clock, string.format("%d", score), id)
  else
    leave_clock(tx, r, task, clock)
  end
end
