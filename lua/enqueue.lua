-- enqueue: producers hand over tasks. Each is created, or found if it is known.
--
-- KEYS[1]  root of the partition, "curfew:{0}"; all other keys are derived from it
-- ARGV     for each task: how many fields it has, then name and value of each.
--          id and kind are required; the others are
--            queue              "default" if absent
--            payload, headers   opaque
--            priority           0 to 3, 3 goes first
--            timeout_ms | deadline_at        from now, or ms since 1970; absent: no deadline
--            default_timeout_ms  timeout_ms, if neither it nor the kind says one
--            budget_percent     of a child: ends after that part of what its owner has left
--            on_deadline        what that means, if it has children: cancel_all (default) or fail
--            delay_ms | available_at         not before; absent: at once
--            queue_timeout_ms   how long it may stand in line
--            attempt_timeout_ms how long one attempt may take
--            on_timeout         of an attempt: fail (default), or retry
--            warn_percent       of its time, after which one event deadline_near is told
--            cancel_grace_ms    how long its handler may go on once it is cancelled
--            max_retries        attempts after the first
--            backoff            constant (default) or exponential
--            backoff_ms, backoff_max_ms, jitter   between attempts; jitter is in percent
--            retry_expression   asked by its worker; decides instead of the class
--            hook_success, hook_failure, hook_timeout, hook_cancel
--                               "kind" or "kind queue" of a task to enqueue at such an end
--            role               promise: no worker runs it, resolve ends it;
--                               timer: a promise that completes at available_at
--            retention_ms       how long its record is kept after its end
--            idempotency_key    the first task with this key is the task
--            idempotency_scope  how long: started, finished, window; absent: a day past the end
--            idempotency_window_ms   of scope window, from now
--            retry_of           id of the ended task that somebody runs again by this one
--          An id with a dot is a child: its owner's id, a dot, a counter or name.
--          What is absent and not "none" comes from the defaults of the kind.
--
-- Returns  for each task one of
--   {"OK", id, deadline_at}      created; also when this id had created it before
--   {"KNOWN", id, deadline_at}   its idempotency key names this task
--   {"CONFLICT", id}             its idempotency key names a task of other content
--   {"TAKEN", id}                the id is that of another task: make a new one
--   {"OWNER", id, status}        its owner has ended, or is not there (status "")
--   {"INVALID", field, why}      nothing was stored
--   {"BROKEN", id, why}          a record in its way cannot be worked with
-- Flags
--
-- @include keys
-- @include now
-- @include handed
-- @include consider
-- @include admit
-- @include flush
-- @include complete

local k, at = keys(KEYS[1]), now()

local function take(task)
  local answer, plan = consider(k, task, at)
  if answer then
    return answer
  end
  admit(k, task, plan, at)
  return {"OK", task.id, task.deadline_at or ""}
end

local answers = {}
for n, task in ipairs(handed(k, "enqueue", ARGV, 1)) do
  local ok, answer = pcall(take, task)
  answers[n] = ok and answer or {"BROKEN", task.id or "", type(answer) == "table" and answer.err or tostring(answer)}
end
complete(flush(k, at))
return answers
