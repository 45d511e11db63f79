-- sweep_delayed puts a task in line when its start time has come, or fires a timer.
--
-- @use store/index
-- @use store/record
-- @use sweep/did
-- @use sweep/leave_clock
-- @use sweep/met_broken
-- @use task/line_up
-- @use task/load_task
local function sweep_delayed(tx, r, id, clock)
  local task, why = load_task(tx, id)
  if not task then
    met_broken(tx, r, clock, id, why)
    return
  end
  local starts = task.status == "PENDING" and tonumber(task.available_at or nil)
  if starts and starts > tx.at then
    index.add(tx, clock, task.available_at, id) -- the clock was wrong, or load_task has just retried it
    return
  end
  if starts and not task.role then
    index.remove(tx, clock, id)
    record.set(tx, task, "ready_at", task.available_at)
    record.set(tx, task, "available_at", nil)
    line_up(tx, task, false, tonumber(task.limit_at or nil))
    did(r, "started")
  else
    leave_clock(tx, r, task, clock)
  end
end
