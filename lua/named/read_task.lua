-- read_task makes a task of its kind and its named fields. A duration has a unit (timeout 30s), or its name ends with _ms.
--
--   given  name: value
--   what   how an error begins: "" or "task 3: "
--
-- Returns fields (of its shape, see call/enqueue.lua), told (the name that each was given by), none (whether the value of any is
--         "none"), id or nil, payload, and what
--
-- @use check/names
-- @use named/is_json
-- @use named/reject
-- @use named/span
local read_task = {}

-- spans are the fields that are durations, by the name without _ms.
local spans = {timeout = "timeout_ms", delay = "delay_ms", queue_timeout = "queue_timeout_ms", attempt_timeout = "attempt_timeout_ms",
  cancel_grace = "cancel_grace_ms", timeout_grace = "timeout_grace_ms", backoff_delay = "backoff_ms", backoff_max = "backoff_max_ms",
  retention = "retention_ms", idempotency_window = "idempotency_window_ms"}

read_task.known = {kind = "first", id = true, payload = true, queue = true, headers = true, priority = true, timeout = true, timeout_ms = true,
  deadline_at = true, budget_percent = true, on_deadline = true, delay = true, delay_ms = true, available_at = true, queue_timeout = true,
  queue_timeout_ms = true, attempt_timeout = true, attempt_timeout_ms = true, on_timeout = true, warn_percent = true, cancel_grace = true,
  cancel_grace_ms = true, timeout_grace = true, timeout_grace_ms = true, max_retries = true, backoff = true, backoff_delay = true,
  backoff_delay_ms = true, backoff_max = true, backoff_max_ms = true, jitter = true, retry_expression = true, hook_success = true,
  hook_failure = true, hook_timeout = true, hook_cancel = true, role = true, retention = true, retention_ms = true,
  idempotency_key = true, idempotency_scope = true, idempotency_window = true, idempotency_window_ms = true, retry_of = true}

-- headers must be readable for every worker.
local function check_headers(text, what)
  local ok, headers = pcall(cjson.decode, text)
  ok = ok and type(headers) == "table" and string.find(text, "^%s*{") and is_json(text)
  for name, value in pairs(ok and headers or {}) do
    ok = ok and type(name) == "string" and type(value) == "string"
  end
  if not ok then
    reject("INVALID", what .. 'headers must be a JSON object of strings, such as {"traceparent":"00-…"}')
  end
end

-- in_ms converts each duration to ms. It returns the fields, the name that each was given by, and whether the value of any
-- field is "none".
local function in_ms(given, what)
  local fields, told, none = {}, {}, false
  for name, value in pairs(given) do
    local field = spans[name] or name == "backoff_delay_ms" and "backoff_ms" or name
    if fields[field] then
      local plain = string.gsub(name, "_ms$", "")
      reject("INVALID", what .. "give " .. plain .. " or " .. plain .. "_ms, and not both")
    end
    if value == "none" then
      none = true
    elseif spans[name] then
      value = span(value, name, what)
    end
    fields[field], told[field] = value, name
  end
  return fields, told, none
end

function read_task.read(kind, given, what)
  local field, why = names.kind(kind)
  if not field and string.find(kind, "^flow/") then
    field, why = "kind", "is for nodes of flows, which their runs enqueue: use another kind"
  end
  if field then
    reject("INVALID", what .. field .. " " .. why)
  end
  local fields, told, none = in_ms(given, what)
  local id, payload = fields.id, fields.payload or ""
  fields.id, fields.payload, fields.kind = nil, nil, kind
  fields.queue = fields.queue or "default"
  if fields.headers then
    check_headers(fields.headers, what)
  end
  return {fields = fields, told = told, none = none, id = id, payload = payload, what = what}
end
