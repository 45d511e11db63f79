-- accepted_before returns the verdict of a report that is a repeat, or nil. If the report put the task back in line, the
-- task may since have been claimed again, and may even have ended. So the record keeps both the report that put it back
-- last, and the call that ended it.
--
-- A report is of one claim, since two workers can use the same name for a call.
--
--   mark  epoch and call of the report
local function accepted_before(task, o, worker, call, mark)
  if task.requeued_by == mark then
    return "PENDING"
  elseif task.call == call and task.epoch == o.epoch and task.worker == worker then
    return task.status
  end
end
