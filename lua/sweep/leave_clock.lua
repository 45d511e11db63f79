-- leave_clock removes a task from a clock on which it does not belong, and puts it in the line or on the clock where
-- it does. If its record cannot say where that is, the task is put aside.
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
