-- How a task ends. Nothing here writes.
--
-- @use store/record: owner_state, record
-- @use store/state: final, is_attempt_limit, is_run
-- @use task/identity: drained
-- @use wait/wait: patience_end

-- backoff returns the ms between a failed attempt and the next one: backoff_ms, doubled by each retry if it is
-- exponential, at most backoff_max_ms or a day, less a part of up to `jitter` percent. That part depends on the id
-- and the retry, so that many tasks that failed together are retried at different instants, and a repeated
-- call computes the same one. (The random numbers of Redis start again in every script.)
local function backoff(task, retries)
  local span = tonumber(task.backoff_ms or 0)
  if task.backoff == "exponential" then
    span = span * 2 ^ retries
  end
  span = math.min(span, tonumber(task.backoff_max_ms or 86400000))
  if task.jitter then
    local drawn = tonumber(string.sub(redis.sha1hex(task.id .. ":" .. retries), 1, 8), 16) / 4294967296
    span = span * (1 - drawn * task.jitter / 100)
  end
  return math.floor(span)
end

-- retry_at decides whether a task whose attempt failed runs again. It returns the instant of the retry, or nil. If
-- only the time is missing, it returns nil and "deadline": a retry that starts after the task's end could only
-- time out.
--
--   failure  class    error: retried; failed: the handler said not to retry; timeout: the attempt took too long,
--                     and the task's on_timeout decides
--            since    the instant at which the attempt failed
--            verdict  the result of the task's retry expression: only "retry" retries. It decides on error and failed
--            delay    ms, or nil for the task's own back-off
local function retry_at(task, failure)
  local wanted
  if failure.class == "timeout" then
    wanted = task.on_timeout == "retry"
  elseif task.retry_expression then
    wanted = failure.verdict == "retry"
  else
    wanted = failure.class == "error"
  end
  local retries = tonumber(task.retries or 0)
  if not wanted or task.cancel_at or retries >= tonumber(task.max_retries or 0) then
    return nil
  end
  local start, last = failure.since + (failure.delay or backoff(task, retries)), final(task)
  if last and start > last then
    return nil, "deadline"
  end
  return start
end

-- cancelled returns the end of a cancelled task, as task/finish.lua takes it.
--
--   text    what its canceller says, or nil
--   call    the call that ends it, or nil
--   reason  why it was cancelled; nil: a client did
local function cancelled(text, call, reason)
  return {status = "CANCELLED", reason = reason or "cancelled", call = call, error = text and text ~= "" and text or "Task cancelled"}
end

-- timed_out returns the end of a task that timed out, as task/finish.lua takes it.
--
--   kind     whose time was up: execution (its own), queue, attempt or workflow (of an ancestor)
--   instant  when the time was up
local function timed_out(task, kind, instant)
  local over = {status = "FAILED", reason = "timeout", timeout_type = kind, error = "Task exceeded deadline",
    completed_at = instant}
  if kind == "execution" and is_run(task.kind) then
    over.timeout_type = "workflow"
  end
  if kind == "execution" and task.on_deadline == "fail" then
    over.error = "Workflow exceeded timeout"
  elseif kind == "attempt" then
    local _, state = retry_at(task, {class = "timeout", since = instant})
    over.retry_state = state
    over.retry_error = not state and string.match(task.on_timeout or "", "^fail: (.+)") or nil
  end
  return over
end

-- ancestor_end returns the earliest instant at which an ancestor of a task ended, and the id of that ancestor. Of
-- equal instants the outermost ancestor counts. It returns nil if no ancestor has ended. Ancestry begins after the last bang (store/state.lua).
local function ancestor_end(tx, id)
  local dot = string.find(id, ".", 1, true)
  if dot then
    local bang = string.find(id, "![^!]*$")
    dot = string.find(id, ".", bang or 1, true)
  end
  local first, ancestor
  while dot do
    local prefix = string.sub(id, 1, dot - 1)
    local ended = drained(tx, prefix)
    if ended and (not first or ended < first) then
      first, ancestor = ended, prefix
    end
    dot = string.find(id, ".", dot + 1, true)
  end
  return first, ancestor
end

-- earliest returns the instant that decides and its kind: ancestor, workflow, execution, queue, attempt, grace, patience (its
-- own limit in its owner's wait), or fires (of a timer). They are tested from the outermost to the innermost, and a later
-- one must be strictly earlier to replace the one before; but a timer fires if it is not later. For an ancestor, it also
-- returns whether that timed out.
--
-- An owner that is out of time is such an ancestor, although its end is not written yet. Its deadline needs no look, since its
-- children have that as `until`. Its own limit in a wait is no certain end, because that wait can have been decided before: `certain`
-- looks at the other ones alone.
local function earliest(tx, task, certain)
  local at = tx.at
  local first, ancestor = ancestor_end(tx, task.id)
  local kind = first and "ancestor"
  local above = first and record.get(tx, ancestor)
  local timeout = above and above.timed_out
  local owner = task.owner and owner_state(tx, task)
  if owner and (owner.owner or owner.role and owner.available_at or owner.grace_at or owner.limit_at and tonumber(owner.limit_at) < at) then
    local ok, ends, how, by_timeout = pcall(earliest, tx, owner, true) -- a damaged owner is put aside by itself, not with its children
    if ok and ends and not (first and first <= ends) then
      first, kind, timeout = ends, "ancestor", not owner.cancel_at and how ~= "fires" and (how ~= "ancestor" or by_timeout)
    end
  end
  local bound = tonumber(task["until"])
  if bound and bound < at and (not first or bound < first) then
    first, kind = bound, "workflow"
  end
  local deadline = tonumber(task.deadline_at)
  if deadline and deadline < at and (not first or deadline < first) then
    first, kind = deadline, "execution"
  end
  local limit = tonumber(task.limit_at)
  if limit and limit < at and (not first or limit < first) then
    local retried = is_attempt_limit(task) and retry_at(task, {class = "timeout", since = limit})
    local line = retried and retried + (tonumber(task.queue_timeout_ms) or math.huge)
    if not retried then
      first, kind = limit, is_attempt_limit(task) and "attempt" or "queue"
    elseif line < at and not (first and first <= line) then
      first, kind = line, "queue"
    end
  end
  local grace = tonumber(task.grace_at)
  if grace and grace < at and (not first or grace < first) then
    first, kind = grace, "grace"
  end
  local patience = task.owner and not certain and patience_end(tx, task)
  if patience and patience < at and (not first or patience < first) then
    first, kind = patience, "patience"
  end
  if task.role == "timer" then
    local fires = tonumber(task.available_at)
    if fires <= at and not (first and first < fires) then
      first, kind = fires, "fires"
    end
  end
  return first, kind, timeout
end

-- ending returns how a live task that is out of time ends, or nil if the task has time left. It never writes.
-- The earliest instant decides: an ancestor's end, the inherited until, its own deadline, the limit of its line or
-- attempt, the end of its grace, its own limit in a wait, or a timer's own instant. Of equal instants the outermost
-- decides. So the result does not depend on which reaper sweeps, in which order, or how late.
--
-- One rule orders what happens in one ms: timers fire, then calls are made, then limits end what still lives. So a timer is
-- due when its instant has come, and a limit when its instant is strictly before now: at its deadline a task is still
-- alive, and a timer that is due at its deadline, or in the ms in which its owner ends, fires. The limit of an attempt that
-- will be retried ends no task (task/finish.lua), but the limit of the line after it does.
local function ending(tx, task)
  local first, kind, timeout = earliest(tx, task)
  if not first then
    return nil
  elseif kind == "fires" then
    return {status = "COMPLETED", result = "", completed_at = first}
  elseif task.cancel_at then
    local over = cancelled(task.cancel_reason, nil, task.reason)
    over.completed_at = first
    return over
  elseif kind == "patience" then
    return {status = "CANCELLED", reason = "wait_timeout", error = "Wait timed out", completed_at = first}
  elseif kind == "ancestor" then
    if not timeout then
      return {status = "CANCELLED", reason = "owner_ended", error = "Owner ended", completed_at = first}
    end
    kind = "workflow"
  end
  return timed_out(task, kind, first)
end
