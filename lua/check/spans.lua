-- spans are the times that a kind can have a default of. A task can have "none" in their place: then it has no value,
-- and no default applies.
local spans = {"timeout_ms", "queue_timeout_ms", "attempt_timeout_ms", "cancel_grace_ms", "timeout_grace_ms", "retention_ms",
  "backoff_ms", "backoff_max_ms"}
