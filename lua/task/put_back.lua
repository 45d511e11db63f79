-- put_back makes a task whose attempt is over PENDING again: in line, or delayed.
--
--   start  the instant from which on it can be claimed; at or before now: at once
--   front  the task is not at fault: it gets a place at the front of the line
--   unrun  its handler never began: its time in line continues (line_at)
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
local function put_back(tx, task, start, front, unrun)
  if task.waiting then
    journal.keep_limit(tx, task)
  end
  leave(tx, task)
  local limit = unrun and tonumber(task.line_at or nil)
  for _, name in ipairs({"lost_by", "attempt_at", "line_at", "woken"}) do
    record.set(tx, task, name, nil)
  end
  task.worker, task.status, task.put_back_now = false, "PENDING", true
  record.touch(tx, task)
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
