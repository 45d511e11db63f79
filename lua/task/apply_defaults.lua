-- apply_defaults sets fields that the producer did not give to the defaults of the kind. A field of the producer
-- comes before the default of the kind. default_timeout_ms, which the owner gives, comes last.
--
--   f         the fields of a task; they are changed
--   none      whether the value of any field is "none"
--   of_kind   the defaults of the kind (task/defaults.lua)
--
-- @use check/spans

-- of_roles are the defaults of promises and timers, which no worker runs.
local of_roles = {timeout_ms = true, retention_ms = true, hook_success = true, hook_failure = true, hook_timeout = true, hook_cancel = true}

local function apply_defaults(tx, f, none, of_kind)
  local open_end = f.timeout_ms == "none"
  for name, value in pairs(of_kind) do
    if f[name] == nil and (not f.role or of_roles[name]) then
      f[name] = value
    end
  end
  if f.deadline_at then
    f.timeout_ms = nil
  end
  for _, name in ipairs(none and spans or tx.none) do
    if f[name] == "none" then
      f[name] = nil
    end
  end
  if not open_end and not f.timeout_ms and not f.deadline_at then
    f.timeout_ms = f.default_timeout_ms
  end
  if (f.on_timeout or f.retry_expression) and tonumber(f.max_retries or 0) == 0 then
    f.on_timeout, f.retry_expression = nil, nil
  end
end
