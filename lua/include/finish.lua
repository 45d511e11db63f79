-- finish ends a task. No other code writes a terminal status. The caller has
-- checked that the task is live.
--
--   ending  status        COMPLETED, FAILED or CANCELLED
--           result|error  exactly one of them
--           reason        why, for FAILED and CANCELLED: error, failed, timeout, lease_lost, rejected, cancelled, owner_ended,
--                         wait_timeout, not_needed
--           timeout_type  execution, queue, attempt or workflow, if it timed out
--           completed_at  the instant that decided, if that is before now
--           fields        name, value, ...: what else the record remembers; always there for COMPLETED
--           settled       its own worker ends it, and need not be told
--
-- It touches this task and the wait that its owner is at, never another task: the
-- sweep ends the children, and until it did they are doomed (ending.lua). The owner is
-- woken by flush (conclude.lua). A hook is a new task.
--
-- @include withdraw
-- @include owner
-- @include kin
-- @include later
-- @include count
-- @include retain
-- @include alarm
-- @include stamp
-- @include tally
-- @include shield
-- @include write
-- @include emit
-- @include hook
local function finish(k, task, ending, at)
  withdraw(k, task)
  if task.deadline_at then
    later(k, "ZREM", k.deadlines, task.id)
  end
  if task.limit_at or task.warn_at or task.grace_at then
    later(k, "ZREM", k.limits, task.id)
  end
  if task.status == "RUNNING" and not ending.settled then
    redis.call("PUBLISH", k.stop .. task.worker, task.id .. " " .. task.epoch .. " " .. ending.reason)
  end

  local key, status = k.task .. task.id, ending.status
  task.status = status
  k.kin[task.id] = nil
  task.completed_at = ending.completed_at and string.format("%d", ending.completed_at) or stamp(k, at)
  task.result, task.error = ending.result, ending.error
  task.reason, task.timeout_type = ending.reason, ending.timeout_type
  if status == "COMPLETED" then
    redis.call("HSET", key, "status", status, "completed_at", task.completed_at,
      "result", ending.result, unpack(ending.fields))
  else
    redis.call("HSET", key, "status", status, "completed_at", task.completed_at,
      "error", ending.error, "reason", ending.reason, unpack(ending.fields or {}))
  end
  count(k, task.queue, string.lower(status), 1)

  if (tonumber(task.children) or 0) > 0 then
    write(k, "ZADD", k.draining, task.completed_at, task.id) -- at once: it dooms the children (ending.lua)
    k.drained[task.id] = nil
    alarm(k, at)
  end
  local parent, waits = owner(task.id), false
  if parent then
    local known = kin(k, parent)
    if known.live then
      waits = known.waits
    else
      parent = nil
    end
  end
  if not parent then
    retain(k, task, at)
  end
  if task.journal then
    redis.call("UNLINK", k.journal .. task.id, k.patience .. task.id)
  end

  if ending.timeout_type then
    local due = tonumber(task.completed_at)
    local began = ending.timeout_type == "attempt" and task.started_at or task.created_at
    local span = ending.timeout_type == "queue" and task.queue_timeout_ms or string.format("%d", due - began)
    local whole = ending.timeout_type == "execution" or ending.timeout_type == "workflow"
    local policy = whole and task.children and (task.on_deadline or "cancel_all") or "fail"
    task.timed_out = "1"
    redis.call("HSET", key, "timed_out", "1", "timeout_type", ending.timeout_type, "detected_at", stamp(k, at))
    count(k, task.queue, "timed_out", 1)
    k.timed_out = (k.timed_out or 0) + 1
    emit(k, "terminal", "task_timed_out", task, at, "timeout_type", ending.timeout_type,
      "timeout_duration_ms", span, "policy_applied", policy, "deadline_at", task.deadline_at or "",
      "started_at", task.started_at or "", "detected_at", stamp(k, at), "lag_ms", string.format("%d", at - due))
  elseif ending.reason then
    emit(k, "terminal", "task_" .. string.lower(status), task, at, "reason", ending.reason)
  else
    emit(k, "terminal", "task_completed", task, at)
  end

  if task.watched then
    redis.call("PUBLISH", k.ended, task.id)
  end
  if waits then
    shield(k, parent, at, tally, k, task, parent, at) -- what is wrong with the wait is no fault of the member
  end

  -- Last, since it makes another task. A timeout is a failure to whoever has no hook
  -- for timeouts.
  if status == "COMPLETED" then
    if task.hook_success then
      hook(k, task, "success", task.hook_success, at)
    end
  elseif status == "CANCELLED" then
    if task.hook_cancel then
      hook(k, task, "cancel", task.hook_cancel, at)
    end
  elseif task.timed_out and task.hook_timeout then
    hook(k, task, "timeout", task.hook_timeout, at)
  elseif task.hook_failure then
    hook(k, task, "failure", task.hook_failure, at)
  end
end
