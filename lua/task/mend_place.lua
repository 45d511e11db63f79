-- mend_place sees to it that a PENDING task stands in its line, or on the clock of delayed tasks. Whoever takes
-- it off a place where it does not belong calls this: it might stand in no other, and nobody would find it.
--
-- A plain task in line has no state. One in no line that has none has lost it: nobody knows how often it ran,
-- or which children it has. It is put aside, and why is returned. The record of any other task says enough.
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
  local why = "its state is lost: it is in no line, and nothing says when it starts"
  put_aside(tx, task.id, why)
  return why
end
