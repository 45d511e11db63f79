-- The fields of a task that are beside the first lines of its record, and what can be given for them. internal/field has the
-- same table in Go.
--
--   1            name in calls and records
--   spec         how the spec has the field: "=" a line, ":" a text; absent: in no line of its own
--   least, most  bounds of a whole number; most is 2^53 if absent
--   none         it can be "none": it has no value, and no default of the kind applies
--   words        the words that it can be
--   text         the check of a text (check/fields.lua)
--   unit         the name of a duration that is given with a unit; with _ms it is the name of one in ms
--   by           who sets it: kind (a kind can have a default, and a producer can set it), client (only the clients of Curfew
--                itself), curfew (no caller); absent: a producer
--   run          it has no meaning for a task that no worker runs
--
-- The spec's fields are in the order in which a record is read out.
local task_fields = {
  {"kind"},
  {"queue"},
  {"timeout_ms", least = 1, none = true, unit = "timeout", by = "kind"},
  {"default_timeout_ms", least = 1, by = "client"},
  {"deadline_at", least = 1},
  {"budget_percent", least = 1, most = 100},
  {"delay_ms", least = 0, unit = "delay"},
  {"available_at", least = 0},
  {"idempotency_window_ms", least = 1, unit = "idempotency_window"},
  {"role", spec = "=", words = {"promise", "timer"}},
  {"priority", spec = "=", least = 0, most = 3, run = true},
  {"until_of", spec = "=", by = "curfew"},
  {"queue_timeout_ms", spec = "=", least = 1, none = true, unit = "queue_timeout", by = "kind", run = true},
  {"attempt_timeout_ms", spec = "=", least = 1, none = true, unit = "attempt_timeout", by = "kind", run = true},
  {"on_timeout", spec = "=", words = {"fail", "retry"}, by = "kind", run = true},
  {"warn_percent", spec = "=", least = 1, most = 99, by = "kind"},
  {"cancel_grace_ms", spec = "=", least = 1, none = true, unit = "cancel_grace", by = "kind", run = true},
  {"timeout_grace_ms", spec = "=", least = 1, none = true, unit = "timeout_grace", by = "kind", run = true},
  {"max_retries", spec = "=", least = 0, by = "kind", run = true},
  {"backoff", spec = "=", words = {"constant", "exponential"}, by = "kind", run = true},
  {"backoff_ms", spec = "=", least = 0, none = true, unit = "backoff_delay", by = "kind", run = true},
  {"backoff_max_ms", spec = "=", least = 1, none = true, unit = "backoff_max", by = "kind", run = true},
  {"jitter", spec = "=", least = 0, most = 100, by = "kind", run = true},
  {"retry_expression", spec = "=", text = "expression", by = "kind", run = true},
  {"retention_ms", spec = "=", least = 0, none = true, unit = "retention", by = "kind"},
  {"result_type", spec = "=", text = "type", by = "kind"},
  {"on_deadline", spec = "=", words = {"cancel_all", "fail"}, by = "kind"},
  {"idempotency_scope", spec = "=", words = {"started", "finished", "window"}},
  {"enqueued_by", spec = "=", text = "word", by = "client"},
  {"retry_of", spec = "=", text = "id"},
  {"hook_of", spec = "=", by = "curfew"},
  {"hook_success", spec = "=", none = true, text = "hook", by = "kind"},
  {"hook_failure", spec = "=", none = true, text = "hook", by = "kind"},
  {"hook_timeout", spec = "=", none = true, text = "hook", by = "kind"},
  {"hook_cancel", spec = "=", none = true, text = "hook", by = "kind"},
  {"node", spec = "=", text = "node", by = "client"},
  {"number", spec = "=", least = 0, by = "curfew"},
  {"of_number", spec = "=", least = 0, by = "curfew"},
  {"payload_bytes", spec = "=", least = 0, by = "curfew"},
  {"headers", spec = ":"},
  {"idempotency_key", spec = ":", text = "key"},
}
