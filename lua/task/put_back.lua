-- put_back makes a task whose attempt is over PENDING again: in line, or delayed.
--
--   start  the instant from which on it can be claimed; at or before now: at once
--   front  the task is not at fault: it gets a place at the front of the line
--   unfit  its worker has no handler for its kind. Its time in line continues (line_at), and it is delayed: 10 ms, twice as
--          long each further time in a row (passed_on), until start or for 1 s at most
--
-- put_back_now tells later code of the same unit that the task was put back. If an agent was waiting, its next attempt
-- can come to the same wait again. Then the limit of the wait and the limits of its members must be the same: the
-- journal keeps to which wait they belong.
--
-- @use store/alarm
-- @use store/index
-- @use store/record
-- @use task/leave
-- @use task/line_up
-- @use task/set_limit
-- @use wait/journal
local function put_back(tx, task, start, front, unfit)
  if task.waiting then
    journal.keep_limit(tx, task)
  end
  leave(tx, task)
  local limit, passed = unfit and tonumber(task.line_at or nil), tonumber(task.passed_on or 0)
  if unfit then
    start = tx.at + math.min(start > tx.at and start - tx.at or 1000, 10 * 2 ^ passed)
  end
  for _, name in ipairs({"lost_by", "attempt_at", "line_at", "passed_on", "woken"}) do
    record.set(tx, task, name, nil)
  end
  task.worker, task.status, task.put_back_now = false, "PENDING", true
  record.touch(tx, task)
  if unfit then
    record.set(tx, task, "passed_on", string.format("%d", passed + 1))
  end
  if start > tx.at then
    record.set(tx, task, "available_at", string.format("%d", start))
    index.add(tx, tx.key.delayed, task.available_at, task.id)
    alarm.note(tx, start)
    set_limit(tx, task, limit)
  else
    record.set(tx, task, "ready_at", tx.now)
    line_up(tx, task, front, limit)
  end
end
