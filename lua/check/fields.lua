-- Checks of the fields of a task and of a kind's defaults.
--
-- @use check/values: whole

-- spans are the durations for which a kind can have a default. A task sets one to "none" to have neither a value nor the default.
local spans = {"timeout_ms", "queue_timeout_ms", "attempt_timeout_ms", "cancel_grace_ms", "timeout_grace_ms", "retention_ms",
  "backoff_ms", "backoff_max_ms"}

local least = {
  priority = 0, timeout_ms = 1, deadline_at = 1, delay_ms = 0, available_at = 0, queue_timeout_ms = 1,
  attempt_timeout_ms = 1, default_timeout_ms = 1, budget_percent = 1, cancel_grace_ms = 1, timeout_grace_ms = 1, retention_ms = 0,
  warn_percent = 1, max_retries = 0, backoff_ms = 0, backoff_max_ms = 1, jitter = 0, idempotency_window_ms = 1,
}
local most = {priority = 3, warn_percent = 99, jitter = 100, budget_percent = 100}

local is_span = {}
for i = 1, #spans do -- ipairs does not exist while a library is being loaded
  is_span[spans[i]] = true
end

local words = {
  backoff = {constant = true, exponential = true, rule = "constant or exponential"},
  idempotency_scope = {started = true, finished = true, window = true, rule = "started, finished or window"},
  role = {promise = true, timer = true, rule = "promise or timer"},
  on_timeout = {fail = true, retry = true, rule = "fail or retry"},
  on_deadline = {cancel_all = true, fail = true, rule = "cancel_all or fail"},
}

local function hook(value)
  local kind, queue = string.match(#value <= 257 and value or "", "^(%w[%w._:/-]*) ?(.*)$")
  local fits = kind and #kind <= 128 and #queue <= 128 and not string.find(kind, "^flow/") and
    (queue == "" and kind == value or string.find(queue, "^%w[%w._-]*$"))
  return fits, "a kind, or a kind, a space and a queue"
end

local texts = {
  idempotency_key = function(value)
    return value ~= "" and #value <= 512, "1 to 512 bytes"
  end,
  hook_success = hook, hook_failure = hook, hook_timeout = hook, hook_cancel = hook,
  node = function(value)
    local definition, version, name = string.match(#value <= 320 and value or "", "^(%a[%w_-]*) (%w[%w._-]*) (%w[%w._-]*)$")
    return definition and #definition <= 64 and #version <= 64 and #name <= 128, "the id of a definition, its version and the name of a node"
  end,
  retry_expression = function(value)
    return #value <= 8192 and string.find(value, "^[^\n]+$"), "one line of up to 8192 bytes"
  end,
  enqueued_by = function(value)
    return #value <= 64 and string.find(value, "^%w[%w_-]*$"), "1 to 64 of A-Z a-z 0-9 _ - and begin with a letter or digit"
  end,
  retry_of = function(value)
    return #value <= 512 and string.find(value, "^%d+%-%w[%w._!-]*$"), "the id of a task"
  end,
}

local function check_field(name, value)
  if least[name] then
    if not whole(value, least[name], most[name]) and not (value == "none" and is_span[name]) then
      return name, "must be a whole number from " .. least[name] .. " to " .. (most[name] or "2^53")
    end
  elseif words[name] then
    local verdict = name == "on_timeout" and #value <= 8192 and string.find(value, "^fail: [^\n]+$")
    if value == "rule" or not words[name][value] and not verdict then
      return name, "must be " .. words[name].rule
    end
  elseif texts[name] then
    local fits, rule = texts[name](value)
    if not fits then
      return name, "must be " .. rule
    end
  elseif name ~= "kind" and name ~= "queue" and name ~= "headers" then
    return name, "is not a field of a task"
  end
end

-- fields checks each field of a task by itself. It returns the first invalid field and the error, or nil. No field is
-- required, because the defaults of a kind are checked here too.
local function fields(given)
  for name, value in pairs(given) do
    local field, fault = check_field(name, value)
    if field then
      return field, fault
    end
  end
end

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

-- pairs_of_fields checks fields against each other, for example a timeout against a deadline. It returns an invalid field
-- and the error, or nil.
--
--   defaults  of the task's kind, because max_retries may come from there
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

-- kind_defaults checks the defaults of a kind (call/define.lua).
local kind_defaults = {}

local allowed = {
  timeout_ms = true, queue_timeout_ms = true, attempt_timeout_ms = true, on_timeout = true, warn_percent = true,
  cancel_grace_ms = true, timeout_grace_ms = true, max_retries = true, backoff = true, backoff_ms = true, backoff_max_ms = true, jitter = true,
  retry_expression = true, retention_ms = true, on_deadline = true, hook_success = true, hook_failure = true, hook_timeout = true,
  hook_cancel = true,
}

-- check returns the error for a single default, or nil.
function kind_defaults.check(name, value, seen)
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

-- together checks defaults against each other, after each was checked by itself. It returns an invalid field and the error,
-- or nil.
function kind_defaults.together(given)
  if given.retry_expression and tonumber(given.max_retries or 0) < 1 then
    return "retry_expression", "needs max_retries of at least 1"
  elseif given.on_timeout == "retry" and tonumber(given.max_retries or 0) < 1 then
    return "on_timeout", "is retry, which needs max_retries of at least 1"
  elseif given.warn_percent and not given.timeout_ms then
    return "warn_percent", "needs a timeout_ms"
  end
end
