-- end_event records the end of a task in one event. For a timeout it also sets timed_out in the record and adds to the
-- counter of the queue.
--
-- @use queue/count
-- @use store/emit
-- @use store/record
-- @use store/tell
-- @use store/policy

-- as_the_last returns the words of the previous timeout's event, if this timeout has the same words.
local function as_the_last(tx, task)
  local last = tx.timeouts[#tx.timeouts]
  if last and last.completed_at == task.completed_at and last.created_at == task.created_at and
    last.deadline_at == task.deadline_at and last.timeout_type == "execution" and task.timeout_type == "execution" and
    not last.children and not task.children then
    return last.said
  end
end

local function say(tx, task)
  local due, type = tonumber(task.completed_at), task.timeout_type
  local began = type == "attempt" and task.started_at or task.created_at
  local span = type == "queue" and task.queue_timeout_ms or string.format("%d", due - began)
  local reason = type == "workflow" and "reason=workflow_timeout " or ""
  return reason .. "timeout_type=" .. type .. " timeout_duration_ms=" .. span .. " policy_applied=" .. policy(task) .. " deadline_at=" ..
    (task.deadline_at or "") .. " detected_at=" .. tx.now .. " lag_ms=" .. string.format("%d", tx.at - due)
end

local function timed_out(tx, task)
  record.set(tx, task, "timed_out", "1")
  record.set(tx, task, "detected_at", tx.now)
  count.add(tx, task.queue, "timed_out", 1)
  task.said = as_the_last(tx, task) or say(tx, task)
  tell.timed_out(tx, task)
  emit(tx, "terminal", "task_timed_out", task, task.said)
end

local function end_event(tx, task)
  if task.timeout_type then
    timed_out(tx, task)
  elseif task.reason then
    emit(tx, "terminal", "task_" .. string.lower(task.status), task, "reason=" .. task.reason)
  else
    emit(tx, "terminal", "task_completed", task)
    if task.role == "timer" and not task.call then
      tx.timers = tx.timers + 1
    end
  end
end
