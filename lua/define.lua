-- define: somebody says what the tasks of a kind have where their producer says
-- nothing. What was said before of this kind is forgotten.
--
-- KEYS[1]  root of the partition
-- ARGV[1]  kind
-- ARGV[2…] name, value, …, of: timeout_ms, queue_timeout_ms, attempt_timeout_ms,
--          on_timeout, warn_percent, cancel_grace_ms, max_retries, backoff, backoff_ms,
--          backoff_max_ms, jitter, retry_expression, retention_ms, on_deadline; nothing: no defaults
--
-- Returns  {"OK"}
--          {"INVALID", field, why}  nothing was changed
-- Flags    allow-oom        workers say this when they start, and must drain a full Redis
--
-- @include keys
-- @include sound

local k = keys(KEYS[1])
local kind = ARGV[1]
local allowed = {
  timeout_ms = true, queue_timeout_ms = true, attempt_timeout_ms = true, on_timeout = true, warn_percent = true,
  cancel_grace_ms = true, max_retries = true, backoff = true, backoff_ms = true, backoff_max_ms = true, jitter = true,
  retry_expression = true, retention_ms = true, on_deadline = true,
}

if not kind or #kind > 128 or not string.find(kind, "^%w[%w._:/-]*$") then
  return {"INVALID", "kind", "must be 1 to 128 of A-Z a-z 0-9 . _ - : / and begin with a letter or digit"}
end
local fields, lines = {}, {}
for i = 2, #ARGV, 2 do
  local name, value = ARGV[i], ARGV[i + 1] or ""
  if not allowed[name] then
    return {"INVALID", name, "is not a default of a kind"}
  elseif value == "none" then
    return {"INVALID", name, "a kind without a default has none: leave it out"}
  end
  if fields[name] then
    return {"INVALID", name, "is there twice"}
  elseif string.sub(name, -3) == "_ms" and (tonumber(value) or 0) > 4503599627370496 then
    return {"INVALID", name, "must be a whole number of up to 2^52"}
  end
  fields[name] = value
  lines[#lines + 1] = name .. "=" .. value
end
local field, why = sound(fields)
if field then
  return {"INVALID", field, why}
elseif fields.retry_expression and tonumber(fields.max_retries or 0) < 1 then
  return {"INVALID", "retry_expression", "needs max_retries of at least 1"}
elseif fields.on_timeout == "retry" and tonumber(fields.max_retries or 0) < 1 then
  return {"INVALID", "on_timeout", "retry needs max_retries of at least 1"}
elseif fields.warn_percent and not fields.timeout_ms then
  return {"INVALID", "warn_percent", "there is no timeout_ms to warn of"}
end
if #lines == 0 then
  redis.call("HDEL", k.root, "kind:" .. kind)
else
  redis.call("HSET", k.root, "kind:" .. kind, table.concat(lines, "\n"))
end
return {"OK"}
