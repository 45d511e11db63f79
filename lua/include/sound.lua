-- sound says what is wrong with a task's fields, each taken by itself: it returns the
-- field and why, or nil. None is required. A span of "none" is one that the defaults of
-- the kind are not to fill in.
--
-- The tables of its rules are made when a task first has a field that is not among the
-- usual ones, since they would be made anew at every call of a script.
local sound_least, sound_most, sound_words
local function sound_rules()
  sound_least = {
    priority = 0, timeout_ms = 1, deadline_at = 1, delay_ms = 0, available_at = 0, queue_timeout_ms = 1,
    attempt_timeout_ms = 1, default_timeout_ms = 1, budget_percent = 1, cancel_grace_ms = 1, retention_ms = 0, warn_percent = 1, max_retries = 0, backoff_ms = 0,
    backoff_max_ms = 1, jitter = 0, idempotency_window_ms = 1,
  }
  sound_most = {priority = 3, warn_percent = 99, jitter = 100, budget_percent = 100}
  sound_words = {
    backoff = "constant or exponential", idempotency_scope = "started, finished or window", role = "promise or timer",
    on_timeout = "fail or retry", on_deadline = "cancel_all or fail", retry_expression = "one line of up to 8192 bytes", retry_of = "the id of a task",
    hook_success = "hook", hook_failure = "hook", hook_timeout = "hook", hook_cancel = "hook",
    headers = "", idempotency_key = "",
  }
end

-- unsound looks at one field.
local function unsound(name, value)
  if not sound_least then
    sound_rules()
  end
  local least, words = sound_least[name], sound_words[name]
  if least then
    local n, most = tonumber(value), sound_most[name]
    local none = value == "none" and name ~= "delay_ms" and name ~= "idempotency_window_ms" and name ~= "default_timeout_ms" and string.sub(name, -3) == "_ms"
    if not none and (not n or not string.find(value, "^%d+$") or n < least or n > (most or 9007199254740992)) then
      return name, "must be a whole number from " .. least .. " to " .. (most or "2^53")
    end
  elseif not words then
    return name, "is not a field of a task"
  elseif words ~= "" then
    local fits
    if name == "on_timeout" then
      fits = value == "fail" or value == "retry" or string.find(value, "^fail: [^\n]+$")
    elseif name == "on_deadline" then
      fits = value == "cancel_all" or value == "fail"
    elseif name == "retry_expression" then
      fits = string.find(value, "^[^\n]+$")
    elseif name == "retry_of" then
      fits = string.find(value, "^%d+%-%w[%w._!-]*$")
    elseif words == "hook" then
      local kind, queue = string.match(value, "^(%w[%w._:/-]*) ?(.*)$")
      fits = kind and #kind <= 128 and #queue <= 128 and (queue == "" and kind == value or string.find(queue, "^%w[%w._-]*$"))
      words = "a kind, or a kind, a space and a queue"
    elseif name == "backoff" then
      fits = value == "constant" or value == "exponential"
    elseif name == "role" then
      fits = value == "promise" or value == "timer"
    elseif name == "idempotency_scope" then
      fits = value == "started" or value == "finished" or value == "window"
    end
    if not fits or #value > 8192 then
      return name, "must be " .. words
    end
  end
end

local function sound(fields)
  for name, value in pairs(fields) do
    if name ~= "id" and name ~= "kind" and name ~= "queue" and name ~= "payload" and
      not (name == "timeout_ms" and #value < 16 and string.find(value, "^[1-9]%d*$")) then
      local field, why = unsound(name, value)
      if field then
        return field, why
      end
    end
  end
end
