-- kind_defaults checks the defaults of a kind (call/define.lua).
local kind_defaults = {}

local allowed = {
  timeout_ms = true, queue_timeout_ms = true, attempt_timeout_ms = true, on_timeout = true, warn_percent = true,
  cancel_grace_ms = true, timeout_grace_ms = true, max_retries = true, backoff = true, backoff_ms = true, backoff_max_ms = true, jitter = true,
  retry_expression = true, retention_ms = true, on_deadline = true, hook_success = true, hook_failure = true, hook_timeout = true,
  hook_cancel = true,
}

-- one returns what is wrong with one default, or nil.
function kind_defaults.one(name, value, seen)
  if not allowed[name] then
    return "is not a default of a kind"
  elseif value == "none" then
    return "cannot be none: leave it out"
  elseif seen[name] then
    return "is given twice"
  elseif string.sub(name, -3) == "_ms" and (tonumber(value) or 0) > 4503599627370496 then
    return "must be a whole number of up to 2^52"
  end
end

-- together checks defaults against each other. Each of them is valid by itself. It returns the field and why, or nil.
function kind_defaults.together(given)
  if given.retry_expression and tonumber(given.max_retries or 0) < 1 then
    return "retry_expression", "needs max_retries of at least 1"
  elseif given.on_timeout == "retry" and tonumber(given.max_retries or 0) < 1 then
    return "on_timeout", "is retry, which needs max_retries of at least 1"
  elseif given.warn_percent and not given.timeout_ms then
    return "warn_percent", "needs a timeout_ms"
  end
end
