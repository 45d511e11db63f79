-- invalid names the field of a task that is wrong by itself, and why; nil if none is.
--
-- @include sound
-- @include owner
-- @include defaults

-- named tells whether a name is sound; a list names few kinds and queues many times.
local function named(k, name, pattern)
  local asked = pattern .. (name or "")
  local fits = k.names[asked]
  if fits == nil then
    fits = name ~= nil and #name <= 128 and string.find(name, pattern) ~= nil
    k.names[asked] = fits
  end
  return fits
end

-- depth is how many names of children an id of this partition ends with; nil if it is
-- none: a root's letters and digits, then those names, which begin with a letter or digit
-- too.
local function depth(k, id)
  if string.match(id, "^(%d+)%-%w[%w._!-]*$") ~= k.partition or string.find(id, "%.[^%w]") or string.sub(id, -1) == "." then
    return nil
  end
  return select(2, string.gsub(id, "%.", ""))
end

-- identified tells whether a task may have an id, with at most 16 names of children. A
-- list names one owner many times. A hook's id is made by the task that it belongs to.
local function identified(k, id)
  k.partition = k.partition or string.match(k.root, "{(%d+)}$")
  if not id or #id > 512 then
    return false
  end
  local parent = owner(id)
  if not parent then
    return not string.find(id, "!", 1, true) and depth(k, id) ~= nil
  end
  local above = k.names[parent]
  if above == nil then
    above = depth(k, parent) or 16
    k.names[parent] = above
  end
  return above < 16 and string.find(id, "^%w[%w_-]*$", #parent + 2) ~= nil
end

-- unfit names a pair of fields that do not go together, and why.
local function unfit(k, task)
  if task.timeout_ms and task.deadline_at then
    return "deadline_at", "give a timeout or a deadline, not both"
  elseif task.delay_ms and task.available_at then
    return "available_at", "give a delay or a start time, not both"
  elseif task.idempotency_key and owner(task.id) then
    return "idempotency_key", "a child's id is its idempotency key"
  elseif task.idempotency_scope and not task.idempotency_key then
    return "idempotency_scope", "there is no idempotency_key whose scope it could be"
  elseif (task.idempotency_scope == "window") ~= (task.idempotency_window_ms ~= nil) then
    return "idempotency_window_ms", "goes with the idempotency_scope window, and that with it"
  end
  if (task.on_timeout == "retry" or task.retry_expression) and
    tonumber(task.max_retries or defaults(k, task.kind).max_retries or 0) < 1 then
    if task.retry_expression then
      return "retry_expression", "needs max_retries of at least 1"
    end
    return "on_timeout", "retry needs max_retries of at least 1"
  end
  if task.role then
    for _, name in ipairs({"queue_timeout_ms", "attempt_timeout_ms", "cancel_grace_ms", "max_retries", "backoff",
      "backoff_ms", "backoff_max_ms", "jitter", "on_timeout", "retry_expression", "priority"}) do
      if task[name] and task[name] ~= "none" then
        return name, "means nothing for a " .. task.role .. ", which no worker runs"
      end
    end
    local start = task.delay_ms or task.available_at
    if task.role == "timer" and not start then
      return "available_at", "a timer needs the time at which it completes, or a delay"
    elseif task.role == "promise" and start then
      return "available_at", "means nothing for a promise: it may be settled at any time"
    end
  end
end

local function invalid(k, task)
  local field, why = sound(task)
  if field then
    return field, why
  end
  if not identified(k, task.id) then
    if task.id and #task.id <= 512 and depth(k, task.id) == 17 then
      return "id", "is nested deeper than 16: have a task above it make this one"
    end
    return "id", "must be the partition, " .. k.partition .. ", a dash, letters and digits"
  end
  if not named(k, task.kind, "^[%w][%w._:/-]*$") then
    return "kind", "must be 1 to 128 of A-Z a-z 0-9 . _ - : / and begin with a letter or digit"
  end
  if not named(k, task.queue, "^[%w][%w._-]*$") then
    return "queue", "must be 1 to 128 of A-Z a-z 0-9 . _ - and begin with a letter or digit"
  end
  return unfit(k, task)
end
