-- leave_clock takes a task off a clock on which it does not belong. It must stand elsewhere.
--
-- @use store/index
-- @use sweep/met_broken
-- @use task/mend_place
local function leave_clock(tx, r, task, clock)
  index.remove(tx, clock, task.id)
  local why = mend_place(tx, task)
  if why then
    met_broken(tx, r, clock, task.id, why)
  end
end
