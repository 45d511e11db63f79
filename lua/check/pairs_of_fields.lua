-- pairs_of_fields returns a field of a task that does not fit with another field, and why; nil if all fit.
--
--   defaults  of the task's kind
local unfit_for_roles = {"queue_timeout_ms", "attempt_timeout_ms", "cancel_grace_ms", "timeout_grace_ms", "max_retries", "backoff",
  "backoff_ms", "backoff_max_ms", "jitter", "on_timeout", "retry_expression", "priority"}

local function role(f)
  for _, name in ipairs(unfit_for_roles) do
    if f[name] and f[name] ~= "none" then
      return name, "cannot be set for a " .. f.role .. ": no worker runs it"
    end
  end
  local start = f.delay_ms or f.available_at
  if f.role == "timer" and not start then
    return "available_at", "is required for a timer: give a start time or a delay"
  elseif f.role == "promise" and start then
    return "available_at", "cannot be set for a promise: it can be settled at any time"
  end
end

local function pairs_of_fields(f, defaults)
  if f.timeout_ms and f.deadline_at then
    return "deadline_at", "cannot be given together with a timeout"
  elseif f.delay_ms and f.available_at then
    return "available_at", "cannot be given together with a delay"
  elseif f.idempotency_scope and not f.idempotency_key then
    return "idempotency_scope", "needs an idempotency_key"
  elseif f.idempotency_window_ms and f.idempotency_scope ~= "window" then
    return "idempotency_window_ms", "needs idempotency_scope window"
  elseif f.idempotency_scope == "window" and not f.idempotency_window_ms then
    return "idempotency_window_ms", "is required for idempotency_scope window"
  end
  local retries = tonumber(f.max_retries or defaults.max_retries or 0)
  if retries < 1 and f.retry_expression then
    return "retry_expression", "needs max_retries of at least 1"
  elseif retries < 1 and f.on_timeout == "retry" then
    return "on_timeout", "is retry, which needs max_retries of at least 1"
  elseif f.role then
    return role(f)
  end
end
