-- names are the names of what a record can have beside its first lines, in the order in which they are
-- written. The value of a line cannot contain a newline. A text can hold any bytes: the head has its length, and the
-- text follows the head.
local names = {}

-- Of the spec, which is written once.
names.spec_lines = {"role", "priority", "until_of", "queue_timeout_ms", "attempt_timeout_ms", "on_timeout",
  "warn_percent", "cancel_grace_ms", "timeout_grace_ms", "max_retries", "backoff", "backoff_ms", "backoff_max_ms", "jitter",
  "retry_expression", "retention_ms", "on_deadline", "idempotency_scope", "enqueued_by", "retry_of", "hook_of", "hook_success",
  "hook_failure", "hook_timeout", "hook_cancel", "node", "number", "of_number", "payload_bytes"}
names.spec_texts = {"headers", "idempotency_key"}

-- Of the state, which is rewritten at each change.
names.state_lines = {"available_at", "limit_at", "warn_at", "ready_at", "attempt_at", "line_at", "passed_on", "children", "watched", "journal", "collects", "waiting", "counted_as",
  "woken", "suspended_by", "requeued_by", "lost_by", "lease_losses", "cancel_at", "grace_at", "cancelled_by", "late_by",
  "progress_at", "code", "reason", "timed_out", "timeout_type", "detected_at", "retry_state", "body_bytes"}
names.state_texts = {"cancel_reason", "progress", "last_error", "retry_error", "release_reason"}

-- The values of these are whole numbers; a record in which one is not is broken. (progress_at is not listed: only
-- people read it.)
names.numbers = {priority = true, queue_timeout_ms = true, attempt_timeout_ms = true, warn_percent = true,
  cancel_grace_ms = true, timeout_grace_ms = true, max_retries = true, backoff_ms = true, backoff_max_ms = true, jitter = true,
  retention_ms = true, number = true, of_number = true, payload_bytes = true, available_at = true, limit_at = true, warn_at = true, ready_at = true, attempt_at = true, line_at = true, passed_on = true,
  children = true, lease_losses = true, cancel_at = true, grace_at = true, detected_at = true, body_bytes = true}

-- (ipairs does not exist while a library is being loaded.)
names.known, names.of_spec, names.of_state = {}, {}, {}

local function add(names_of, list, value)
  for i = 1, #list do
    names_of[list[i]] = value
  end
end

add(names.of_spec, names.spec_lines, "=")
add(names.of_spec, names.spec_texts, ":")
add(names.of_state, names.state_lines, "=")
add(names.of_state, names.state_texts, ":")
add(names.known, names.spec_lines, true)
add(names.known, names.spec_texts, true)
add(names.known, names.state_lines, true)
add(names.known, names.state_texts, true)
