-- finish ends a task that is known to be live. No other file writes a terminal status.
--
--   ending  status        COMPLETED, FAILED or CANCELLED
--           result|error  exactly one of them
--           reason        of FAILED and CANCELLED: error, failed, timeout, lease_lost, rejected, cancelled,
--                         owner_ended, wait_timeout or not_needed
--           timeout_type  execution, queue, attempt or workflow, if it timed out
--           completed_at  the instant that decided, if that was before now
--           call          the call that ended it, if any
--           code, retry_state, retry_error, lease_losses   other fields of the record
--           by_worker     the task's own worker reports the end, and needs no message to stop
--
-- It changes this task, and counts the end in the wait of its owner. It changes no other task. The sweep ends the
-- children: until then they are doomed (task/ending.lua). The unit of work wakes the owner.
--
-- @use store/figures
-- @use store/index
-- @use store/publish
-- @use store/record
-- @use queue/count
-- @use task/doom_children
-- @use task/leave
-- @use store/owner_state
-- @use task/schedule_removal
-- @use task/end_event
-- @use task/end_hook
-- @use wait/count_end
-- @use wait/ends
-- @use wait/journal

local rarely = {"code", "retry_state", "retry_error", "lease_losses"}

local function change_record(tx, task, ending)
  if #(ending.result or ending.error) > record.inline and redis.call("EXISTS", tx.key.result .. task.id) == 1 then
    error("the key of its result already exists", 0)
  end
  task.status, task.result, task.error, task.call = ending.status, ending.result, ending.error, ending.call or task.call
  task.completed_at = ending.completed_at and string.format("%d", ending.completed_at) or tx.now
  record.touch(tx, task)
  if ending.reason then
    record.set(tx, task, "reason", ending.reason)
    record.set(tx, task, "timeout_type", ending.timeout_type)
    for _, name in ipairs(rarely) do
      if ending[name] then
        record.set(tx, task, name, ending[name])
      end
    end
  end
end

local function finish(tx, task, ending)
  figures.note(tx, task)
  leave(tx, task) -- its line, its worker's claims, its own wait
  if task.deadline_at then
    index.remove(tx, tx.key.deadlines, task.id)
  end
  if task.limit_at or task.warn_at or task.grace_at then
    index.remove(tx, tx.key.limits, task.id)
  end
  if task.status == "RUNNING" and not ending.by_worker then
    publish.stop(tx, task, ending.reason)
  end
  change_record(tx, task, ending)
  count.add(tx, task.queue, string.lower(task.status), 1)
  if (tonumber(task.children or 0) or 0) > 0 then
    doom_children(tx, task)
  end
  local owner = owner_state(tx, task)
  if not owner then
    schedule_removal(tx, task) -- a child's record is kept while its owner lives
  end
  if task.journal then
    journal.drop(tx, task.id)
  end
  if task.collects then
    ends.forget(tx, task.id)
  end
  end_event(tx, task)
  if task.watched then
    publish.ended(tx, task)
  end
  if owner and owner.collects then
    ends.add(tx, owner.id, task)
  end
  if owner and owner.waiting then
    count_end(tx, task, owner)
  end
  end_hook(tx, task) -- last, since it makes another task
end
