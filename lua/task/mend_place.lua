-- mend_place makes sure that a PENDING task is in its line, or on the clock of delayed tasks. A caller that removes
-- a task from a place where it does not belong must call mend_place: the task could be in no other place, and no call
-- would find it.
--
-- A plain task in line has no state. If a task is in no line and has no state, its state is lost: how often it ran
-- and which children it has is unknown. So it is put aside, and mend_place returns why. Any other task gets its place.
--
-- @use store/attempt
-- @use store/index
-- @use task/line_up
-- @use task/put_aside
local function mend_place(tx, task)
  if task.status ~= "PENDING" or task.role or task.put_back_now then
    return nil
  elseif task.available_at then
    index.add(tx, tx.key.delayed, task.available_at, task.id)
    return nil
  elseif type(attempt("ZSCORE", tx.key.ready .. task.queue, task.id)) == "string" then
    return nil
  elseif attempt("EXISTS", tx.key.state .. task.id) == 1 then
    line_up(tx, task)
    return nil
  end
  local why = "its state is lost: it is PENDING, but neither in line nor delayed"
  put_aside(tx, task.id, why)
  return why
end
