-- The end of a task or of an attempt, and what a task comes to when it is read.
--
-- @use check/values: valid_utf8
-- @use queue/queue: count
-- @use store/events: emit
-- @use store/figures: figures, tally
-- @use store/index
-- @use store/messages: alarm, publish
-- @use store/record: owner_state, record
-- @use store/state: final, is_attempt_limit, live, policy
-- @use store/tell
-- @use task/create: create, defaults, draft, fill_backoff
-- @use task/ending: ending, retry_at
-- @use task/identity: drains, left_behind
-- @use task/place: leave, put_aside, put_back, schedule_limit
-- @use task/removal: remove_record, schedule_removal
-- @use wait/ends
-- @use wait/journal
-- @use wait/wait: count_end

-- told returns the payload of a hook. Of the error it has the first 4,096 bytes: an error of a MiB can be 6 MiB of JSON, because a
-- control character is six bytes there, and no client could enqueue that again.
local function told(task, event)
  local words = {'"event":"' .. event .. '"', '"task_id":' .. cjson.encode(task.id)}
  for _, name in ipairs({"kind", "queue", "reason", "timeout_type", "error", "status"}) do
    if task[name] then
      words[#words + 1] = '"' .. name .. '":' .. cjson.encode(valid_utf8(string.sub(task[name], 1, 4096)))
    end
  end
  if task.code and (task.reason == "error" or task.reason == "failed") then
    words[#words + 1] = '"code":' .. task.code
  end
  for _, name in ipairs({"created_at", "started_at", "deadline_at", "completed_at"}) do
    if task[name] then
      words[#words + 1] = '"' .. name .. '":' .. task[name]
    end
  end
  return "{" .. table.concat(words, ",") .. "}"
end

-- traced returns the trace context among the headers of a task as headers of its hook, so that the trace of the hook leads
-- to the sender of the task. It leaves out values that are not valid, and returns nil if none is left.
local function traced(headers)
  if not headers or not string.find(string.lower(headers), '"trace', 1, true) then
    return nil
  end
  local ok, all = pcall(cjson.decode, headers)
  local found, words = {}, {}
  for name, value in pairs(ok and type(all) == "table" and all or {}) do
    if type(name) == "string" and type(value) == "string" and #value <= 512 then
      found[string.lower(name)] = value
    end
  end
  for _, name in ipairs(found.traceparent and {"traceparent", "tracestate"} or {}) do
    words[#words + 1] = found[name] and '"' .. name .. '":' .. cjson.encode(found[name])
  end
  return words[1] and "{" .. table.concat(words, ",") .. "}"
end

-- hook enqueues the task that follows the end of another one. The hook is a root task. Its id is the ended task's id,
-- a bang and the event, so a task has at most one hook for each event. A hook has 5 minutes unless its kind says
-- otherwise, and no hooks, even if its kind has some. Its payload is a JSON object that says what ended and how.
--
--   event  success, failure, timeout or cancel
--   asked  the hook's kind, and its queue after a space if it is not "default"
local function hook(tx, task, event, asked)
  local id = task.id .. "!" .. event
  local old = record.get(tx, id)
  if not old or old.status and not left_behind(tx, old) then
    return
  elseif old.status then
    remove_record(tx, old)
  end
  local kind, queue = string.match(asked, "^(%S+) ?(%S*)$")
  local f = {kind = kind, queue = queue ~= "" and queue or "default", hook_of = task.id, headers = traced(task.headers)}
  for name, value in pairs(defaults(tx, kind)) do
    if string.sub(name, 1, 5) ~= "hook_" then -- otherwise a kind could call itself without end
      f[name] = value
    end
  end
  fill_backoff(f)
  local deadline = f.timeout_ms ~= "none" and tx.at + (tonumber(f.timeout_ms) or 300000) or nil
  create(tx, id, told(task, event), draft(tx, f, {deadline = deadline, of = task}))
end

-- end_hook enqueues the hook of a task for the way it ended, if the task has one. A timeout uses the hook for failures
-- if the task has no hook for timeouts.
local function end_hook(tx, task)
  if task.status == "COMPLETED" then
    if task.hook_success then
      hook(tx, task, "success", task.hook_success)
    end
  elseif task.status == "CANCELLED" then
    if task.hook_cancel then
      hook(tx, task, "cancel", task.hook_cancel)
    end
  elseif task.timed_out and task.hook_timeout then
    hook(tx, task, "timeout", task.hook_timeout)
  elseif task.hook_failure then
    hook(tx, task, "failure", task.hook_failure)
  end
end

-- as_the_last returns the words of the previous timeout's event, if this timeout has the same words.
local function as_the_last(tx, task)
  local last = tell.last_timeout(tx)
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

-- end_event records the end of a task in one event. For a timeout it also sets timed_out in the record and adds to the
-- counter of the queue.
local function end_event(tx, task)
  if task.timeout_type then
    timed_out(tx, task)
  elseif task.reason then
    emit(tx, "terminal", "task_" .. string.lower(task.status), task, "reason=" .. task.reason)
  else
    emit(tx, "terminal", "task_completed", task)
    if task.role == "timer" and not task.call then
      tell.timer(tx)
    end
  end
end

-- doom_children prevents the children of an ended task from starting (task/ending.lua). The sweep ends them.
local function doom_children(tx, task)
  index.add(tx, tx.key.draining, task.completed_at, task.id)
  drains(tx, task.id, tonumber(task.completed_at))
  alarm.note(tx, tx.at)
end

local rarely = {"code", "retry_state", "retry_error", "lease_losses"}

local function change_record(tx, task, outcome)
  if #(outcome.result or outcome.error) > record.inline and redis.call("EXISTS", tx.key.result .. task.id) == 1 then
    error("the key of its result already exists", 0)
  end
  task.status, task.result, task.error, task.call = outcome.status, outcome.result, outcome.error, outcome.call or task.call
  task.completed_at = outcome.completed_at and string.format("%d", outcome.completed_at) or tx.now
  record.touch(tx, task)
  if outcome.reason then
    record.set(tx, task, "reason", outcome.reason)
    record.set(tx, task, "timeout_type", outcome.timeout_type)
    for _, name in ipairs(rarely) do
      if outcome[name] then
        record.set(tx, task, name, outcome[name])
      end
    end
  end
end

-- finish ends a task that is known to be live. No other file writes a terminal status.
--
--   outcome  status        COMPLETED, FAILED or CANCELLED
--            result|error  exactly one of them
--            reason        of FAILED and CANCELLED: error, failed, timeout, lease_lost, rejected, cancelled,
--                          owner_ended, wait_timeout or not_needed
--            timeout_type  execution, queue, attempt or workflow, if it timed out
--            completed_at  the instant that decided, if that was before now
--            call          the call that ended it, if any
--            code, retry_state, retry_error, lease_losses   other fields of the record
--            by_worker     the task's own worker reports the end, and needs no message to stop
--
-- It changes this task, and counts the end in the wait of its owner. It changes no other task. The sweep ends the
-- children: until then they are doomed (task/ending.lua). The unit of work wakes the owner.
local function finish(tx, task, outcome)
  figures.note(tx, task)
  leave(tx, task) -- its line, its worker's claims, its own wait
  if task.deadline_at then
    index.remove(tx, tx.key.deadlines, task.id)
  end
  if task.limit_at or task.warn_at or task.grace_at then
    index.remove(tx, tx.key.limits, task.id)
  end
  if task.status == "RUNNING" and not outcome.by_worker then
    publish.stop(tx, task, outcome.reason)
  end
  change_record(tx, task, outcome)
  count.add(tx, task.queue, string.lower(task.status), 1)
  if (tonumber(task.children) or 0) > 0 then
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

local function tell_retry(tx, task, failure, start)
  if failure.class == "timeout" then
    emit(tx, "all", "attempt_timed_out", task, "timeout_type=attempt policy_applied=retry" ..
      " timeout_duration_ms=" .. string.format("%d", failure.since - task.started_at) ..
      " deadline_at=" .. (task.deadline_at or "") .. " detected_at=" .. tx.now .. " lag_ms=" .. string.format("%d", tx.at - failure.since) ..
      " available_at=" .. string.format("%d", start))
  else
    emit(tx, "all", "task_retried", task, "reason=" .. failure.class .. " available_at=" .. string.format("%d", start))
  end
end

-- fail_attempt retries a task whose attempt failed, or ends it. N retries are N + 1 attempts. A retry is reported to
-- the attempt's own worker only: waits, hooks and terminal events are for the end of the task.
--
--   failure  class, since, verdict, delay   see task/ending.lua
--            error  the handler's error
--            code   its exit code, "" for none
--            call   the call that reported it; nil if the clock ended the attempt: the worker is notified
local function fail_attempt(tx, task, failure)
  local timeout = failure.class == "timeout"
  local start, state = retry_at(task, failure)
  local code = failure.code ~= "" and failure.code or nil
  local said = failure.verdict
  if timeout then
    said = task.on_timeout
  end
  if task.retry_expression and (said or "") == "" then
    said = "fail: nobody gave a verdict of the retry expression"
  end
  local retry_error = string.match(said or "", "^fail: (.+)")
  local text = timeout and "Task exceeded deadline" or failure.error ~= "" and failure.error or "Task failed"
  if not start then
    finish(tx, task, {status = "FAILED", reason = failure.class, error = text, by_worker = failure.call ~= nil,
      call = failure.call, code = code, retry_error = retry_error, retry_state = state,
      timeout_type = timeout and "attempt" or nil, completed_at = timeout and failure.since or nil})
    return
  end
  if not failure.call and task.status == "RUNNING" then
    publish.stop(tx, task, "timeout")
  end
  if code then
    record.set(tx, task, "code", code)
  end
  if retry_error then
    record.set(tx, task, "retry_error", retry_error)
  end
  if timeout then
    tally.timeout(tx, task, " retried timeout", "attempt", failure.since)
    tally.retried_node(tx, task)
  end
  tell_retry(tx, task, failure, start)
  task.retries = string.format("%d", (task.retries or 0) + 1)
  record.set(tx, task, "last_error", string.sub(text, 1, 4096))
  put_back(tx, task, start)
end

-- cancel_task cancels a live task. If the task runs and has a grace, its worker is notified, and it ends when its
-- handler stops, at the end of the grace, or when its time is up. Every other task ends at once.
--
--   outcome  the end of the task, if it ends now (task/ending.lua)
--   text     the text that the record keeps during a grace, cut to 4,096 bytes
--   call     the call that cancels the task, or nil
local function cancel_task(tx, task, outcome, text, call)
  if task.status ~= "RUNNING" or not task.cancel_grace_ms then
    finish(tx, task, outcome)
  elseif not task.cancel_at then
    local grace_end, last = tx.at + tonumber(task.cancel_grace_ms), final(task)
    record.set(tx, task, "cancel_at", tx.now)
    record.set(tx, task, "grace_at", string.format("%d", last and math.min(last, grace_end) or grace_end))
    record.set(tx, task, "reason", outcome.reason) -- the end has it, however the grace ends
    record.set(tx, task, "cancel_reason", string.sub(text, 1, 4096))
    record.set(tx, task, "cancelled_by", call)
    schedule_limit(tx, task)
    publish.stop(tx, task, "cancelling")
    emit(tx, "all", "task_cancelling", task, "grace_at=" .. task.grace_at)
  end
end

-- may_be_over reports whether a task needs a full check: most are root tasks with nothing but a deadline.
local function may_be_over(tx, task)
  local deadline = task.deadline_at
  return task.rich or task.role or task.owner or deadline and tonumber(deadline) < tx.at
end

-- load_task reads a task. If the time of the task or of its attempt is up, load_task ends that first. Every call that
-- writes to a task begins with load_task, so a late task counts as late even if no reaper has run.
--
-- Returns  the task; its status is false if no task has this id
--          nil and why if its record cannot be used: then the task has been put aside
local function load_task(tx, id)
  local task, why = record.get(tx, id)
  if not task then
    put_aside(tx, id, why)
    return nil, why
  end
  if live(task) and may_be_over(tx, task) then
    local over = ending(tx, task)
    local limit = task.limit_at and tonumber(task.limit_at)
    -- An attempt that is retried ended before the task: afterwards its time in line, for example, ends the task.
    if limit and limit < tx.at and not (over and over.completed_at <= limit) and is_attempt_limit(task) then
      fail_attempt(tx, task, {class = "timeout", since = limit, code = ""})
      over = live(task) and ending(tx, task)
    end
    if over then
      finish(tx, task, over)
    end
  end
  return task
end
