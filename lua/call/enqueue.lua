-- enqueue: a producer hands over tasks. The call creates each task, or finds it if it exists already.
--
-- ARGV  shapes, and tasks with id and payload (task/enqueue.lua). A shape must have the field kind. Other fields are
--         queue              "default" if absent
--         headers            opaque
--         priority           0 to 3; 3 is handed out first
--         timeout_ms | deadline_at        ms from now, or ms since 1970; absent: no deadline
--         default_timeout_ms  timeout_ms, if neither the shape nor the kind sets one
--         budget_percent     of a child: it must end within this part of the time that its owner has left
--         on_deadline        how a task that has children ends when its time is up: cancel_all (default) or fail
--         delay_ms | available_at         earliest start, from now or since 1970; absent: at once
--         queue_timeout_ms   how long it can wait in line
--         attempt_timeout_ms how long one attempt can take
--         on_timeout         what follows such an attempt: fail (default), or retry. With retry_expression and
--                            attempt_timeout_ms it must be given: retry, fail, or fail: and why
--         warn_percent       part of its time after which one event deadline_near is written
--         cancel_grace_ms    how long its handler can continue after a cancel
--         timeout_grace_ms   how long before its time is up its worker ends the handler's context
--         max_retries        attempts after the first
--         backoff            constant or exponential
--         backoff_ms, backoff_max_ms, jitter   wait between attempts; jitter is in percent. A task with retries and without
--                            backoff_ms gets 1000, 600000, exponential and 20, or less in a short time (task/create.lua)
--         retry_expression   its worker evaluates it when an attempt fails; the result replaces the failure's class
--         hook_success, hook_failure, hook_timeout, hook_cancel
--                            "kind" or "kind queue" of a task to enqueue at such an end
--         result_type        which JSON it can end with, such as bool or {approved: bool} (check/result_type.lua); absent: any bytes
--         role               promise: no worker runs it, resolve ends it;
--                            timer: a promise that completes at available_at
--         retention_ms       how long its record is kept after its end, at least a minute
--         idempotency_key    the first task with this key owns the key; 1 to 512 bytes
--         idempotency_scope  how long: started, finished, window; absent: until a day after the end
--         idempotency_window_ms   of scope window, from now
--         enqueued_by        one word that identifies this call and its repeats: a task that exists already, and
--                            that another call has made, is KNOWN
--         retry_of           id of the ended task that this task repeats by hand
--         node               of a flow's run: the id of its definition, its version, and the name of the node
--       An id with a dot is a child: its owner's id, a dot, and a counter or a name. The defaults of the kind
--       apply to fields that are absent. A time or hook can be "none": it has no value, and no default applies. A
--       default timeout counts from the earliest start. That of the namespace (call/configure.lua) is for root tasks that a
--       worker runs, and comes after that of the kind.
--
-- Returns  for each task one of
--   deadline_at                  created, now or by an earlier copy of this call; "" for no deadline
--   {"KNOWN", id, deadline_at}   the idempotency key belongs to this task; or another call has made the task
--   {"CONFLICT", id}             the idempotency key belongs to a task with other content
--   {"TAKEN", id}                the id belongs to another task: use a new one
--   {"FULL", queue, max_length}  the queue has max_length tasks in line: enqueue the task again later
--   {"OWNER", id, status}        the owner has ended, or does not exist (status "")
--   {"INVALID", field, why}      the task was not stored
--   {"BROKEN", id, why}          a record that the task needs is damaged
-- Flags
--
-- @use store/tell: answer
-- @use store/tx: begin, read_root
-- @use task/enqueue: enqueue_all, read_tasks
-- @use unit/unit

local function enqueue(keys, argv)
  local tasks, kinds = read_tasks(argv, 1)
  local tx = read_root(begin(keys[1]), kinds)
  tx.strict = true
  local answers = unit(tx, enqueue_all, tasks)
  for n, said in ipairs(answers) do
    answers[n] = said[1] == "OK" and said[3] or said
  end
  return answer(tx, answers)
end
