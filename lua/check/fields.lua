-- fields checks each field of a task by itself. It returns the field that is wrong and why, or nil. No field is
-- required. The value "none" of a time means that the kind's default does not apply.
--
-- @use check/spans
-- @use check/whole
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
  backoff = {constant = true, exponential = true, says = "constant or exponential"},
  idempotency_scope = {started = true, finished = true, window = true, says = "started, finished or window"},
  role = {promise = true, timer = true, says = "promise or timer"},
  on_timeout = {fail = true, retry = true, says = "fail or retry"},
  on_deadline = {cancel_all = true, fail = true, says = "cancel_all or fail"},
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

local function fault(name, value)
  if least[name] then
    if not whole(value, least[name], most[name]) and not (value == "none" and is_span[name]) then
      return name, "must be a whole number from " .. least[name] .. " to " .. (most[name] or "2^53")
    end
  elseif words[name] then
    local verdict = name == "on_timeout" and #value <= 8192 and string.find(value, "^fail: [^\n]+$")
    if value == "says" or not words[name][value] and not verdict then
      return name, "must be " .. words[name].says
    end
  elseif texts[name] then
    local fits, says = texts[name](value)
    if not fits then
      return name, "must be " .. says
    end
  elseif name ~= "kind" and name ~= "queue" and name ~= "headers" then
    return name, "is not a field of a task"
  end
end

local function fields(given)
  for name, value in pairs(given) do
    local field, why = fault(name, value)
    if field then
      return field, why
    end
  end
end
