-- enqueue: a producer hands over tasks. Each is created, or found if it exists already.
--
-- ARGV  shapes and tasks (task/read_tasks.lua). Of the fields of a shape, kind is required; the others are
--         queue              "default" if absent
--         headers            opaque
--         priority           0 to 3, 3 goes first
--         timeout_ms | deadline_at        from now, or ms since 1970; absent: no deadline
--         default_timeout_ms  timeout_ms, if neither it nor the kind says one
--         budget_percent     of a child: ends after that part of what its owner has left
--         on_deadline        what that means, if it has children: cancel_all (default) or fail
--         delay_ms | available_at         not before; absent: at once
--         queue_timeout_ms   how long it may stand in line
--         attempt_timeout_ms how long one attempt may take
--         on_timeout         of an attempt: fail (default), or retry
--         warn_percent       of its time, after which one event deadline_near is told
--         cancel_grace_ms    how long its handler may go on once it is cancelled
--         timeout_grace_ms   how long before its time is up its worker ends the handler's context
--         max_retries        attempts after the first
--         backoff            constant (default) or exponential
--         backoff_ms, backoff_max_ms, jitter   between attempts; jitter is in percent
--         retry_expression   evaluated by its worker; decides instead of the class of a failure
--         hook_success, hook_failure, hook_timeout, hook_cancel
--                            "kind" or "kind queue" of a task to enqueue at such an end
--         role               promise: no worker runs it, resolve ends it;
--                            timer: a promise that completes at available_at
--         retention_ms       how long its record is kept after its end
--         idempotency_key    the first task with this key is the task; 1 to 512 bytes
--         idempotency_scope  how long: started, finished, window; absent: a day past the end
--         idempotency_window_ms   of scope window, from now
--         enqueued_by        one word that stands for this call and its repeats: a task that is there already, and that
--                            another call has made, is KNOWN
--         retry_of           id of the ended task that somebody runs again by this one
--       An id with a dot is a child: its owner's id, a dot, and a counter or a name. What is absent and not
--       "none" comes from the defaults of the kind.
--
-- Returns  for each task one of
--   deadline_at                  created, now or by an earlier copy of this call; "" for no deadline
--   {"KNOWN", id, deadline_at}   its idempotency key belongs to this task; or the id does, and another call has made it
--   {"CONFLICT", id}             its idempotency key belongs to a task with other content
--   {"TAKEN", id}                the id belongs to another task: use a new one
--   {"OWNER", id, status}        its owner has ended, or does not exist (status "")
--   {"INVALID", field, why}      nothing was stored
--   {"BROKEN", id, why}          a record that it needs is damaged
-- Flags
--
-- @use store/begin
-- @use store/read_root
-- @use store/unit
-- @use task/adopt
-- @use task/look_for_existing
-- @use task/plan
-- @use task/read_tasks

local function enqueue_all(tx, tasks)
  local answers = {}
  look_for_existing(tx, tasks)
  for n, task in ipairs(tasks) do
    local answer, d, parent = plan(tx, task)
    if not answer then
      adopt(tx, task, d, parent)
      answer = d.deadline_at or ""
    elseif answer[1] == "OK" then
      answer = answer[3]
    end
    answers[n] = answer
  end
  return answers
end

local function enqueue(keys, argv)
  local tasks, kinds = read_tasks(argv, 1)
  local tx = read_root(begin(keys[1]), kinds)
  tx.strict = true
  local answers = unit(tx, enqueue_all, tasks)
  if tx.failed[1] then
    error(tx.failed[1], 0)
  end
  return answers
end
