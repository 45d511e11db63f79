-- fill puts the defaults of the kind where the producer said nothing. Its own word goes
-- before the kind's, and the kind's before default_timeout_ms, which is its owner's.
--
-- @include defaults
local function fill(k, task)
  local open_end = task.timeout_ms == "none"
  local given = defaults(k, task.kind)
  if next(given) then
    for name, value in pairs(given) do
      if task[name] == nil and not (task.role and name ~= "timeout_ms" and name ~= "retention_ms") then
        task[name] = value
      end
    end
    if task.deadline_at then
      task.timeout_ms = nil
    end
  end
  if k.none then
    for _, name in ipairs({"timeout_ms", "queue_timeout_ms", "attempt_timeout_ms", "cancel_grace_ms", "retention_ms",
      "backoff_ms", "backoff_max_ms"}) do
      if task[name] == "none" then
        task[name] = nil
      end
    end
  end
  if not open_end and not task.timeout_ms and not task.deadline_at then
    task.timeout_ms = task.default_timeout_ms
  end
  if (task.on_timeout or task.retry_expression) and tonumber(task.max_retries or 0) == 0 then
    task.on_timeout, task.retry_expression = nil, nil
  end
end
