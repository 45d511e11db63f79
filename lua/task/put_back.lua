-- put_back makes a task whose attempt is over PENDING again: back in line, or later.
--
--   start  the instant from which on it may be fetched; at or before now: at once
--   front  it is not the task's fault: it gets its place at the front back
--
-- Whoever finds the task later in the same call sees by put_back_now that it stands elsewhere now. An
-- agent that was waiting will come to the same wait again, and its limit, and its patience with members,
-- are what they were: the journal keeps of which wait they are.
--
-- @use store/alarm
-- @use store/index
-- @use store/record
-- @use task/leave
-- @use task/line_up
-- @use task/set_limit
-- @use wait/journal
local function put_back(tx, task, start, front)
  if task.waiting then
    journal.keep_limit(tx, task)
  end
  leave(tx, task)
  for _, name in ipairs({"lost_by", "attempt_at", "woken"}) do
    record.set(tx, task, name, nil)
  end
  task.worker, task.status, task.put_back_now = false, "PENDING", true
  record.touch(tx, task)
  if start > tx.at then
    record.set(tx, task, "available_at", string.format("%d", start))
    index.add(tx, tx.key.delayed, task.available_at, task.id)
    alarm.note(tx, start)
    set_limit(tx, task)
  else
    record.set(tx, task, "ready_at", tx.now)
    line_up(tx, task, front)
  end
end
