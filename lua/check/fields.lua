-- Checks of the fields of a task and of a kind's defaults.
--
-- @use check/result_type
-- @use check/values: whole
-- @use store/task_fields

-- nones are the fields that a task sets to "none" to have neither a value nor the default of its kind.
local nones = {}

-- The fields that callers can set, by name: false for those of which any value fits; those that have no meaning for a task that no
-- worker runs; and by field the words that it can be.
local rows, of_runs, words = {}, {}, {}

for i = 1, #task_fields do -- ipairs does not exist while a library is being loaded
  local row = task_fields[i]
  if row.by ~= "curfew" then
    rows[row[1]] = (row.least or row.words or row.text) and row or false
  end
  if row.none then
    nones[#nones + 1] = row[1]
  end
  if row.run then
    of_runs[#of_runs + 1] = row[1]
  end
  words[row[1]] = {}
  for n = 1, row.words and #row.words or 0 do
    words[row[1]][row.words[n]] = true
  end
end

local function hook(value)
  local kind, queue = string.match(#value <= 257 and value or "", "^(%w[%w._:/-]*) ?(.*)$")
  local fits = kind and #kind <= 128 and #queue <= 128 and not string.find(kind, "^flow/") and kind ~= "none" and
    (queue == "" and kind == value or string.find(queue, "^%w[%w._-]*$"))
  return fits, "a kind, or a kind, a space and a queue"
end

local texts = {
  hook = hook,
  key = function(value)
    return value ~= "" and #value <= 512, "1 to 512 bytes"
  end,
  node = function(value)
    local definition, version, name = string.match(#value <= 320 and value or "", "^(%a[%w_-]*) (%w[%w._-]*) (%w[%w._-]*)$")
    return definition and #definition <= 64 and #version <= 64 and #name <= 128, "the id of a definition, its version and the name of a node"
  end,
  expression = function(value)
    return #value <= 8192 and string.find(value, "^[^\n]+$"), "one line of up to 8192 bytes"
  end,
  type = function(value)
    return result_type.parse(value), "a type such as bool, [string] or {approved: bool, note: string?}, of up to " .. result_type.longest ..
      " bytes and " .. result_type.deepest .. " levels"
  end,
  word = function(value)
    return #value <= 64 and string.find(value, "^%w[%w_-]*$"), "1 to 64 of A-Z a-z 0-9 _ - and begin with a letter or digit"
  end,
  id = function(value)
    return #value <= 520 and string.find(value, "^%d+%-%w[%w._!-]*$"), "the id of a task" -- of a hook, too
  end,
}

local function check_field(name, value)
  local row = rows[name]
  if row == false or row and row.none and value == "none" then
    return nil
  elseif not row then
    return name, "is not a field of a task"
  elseif row.least then
    if not whole(value, row.least, row.most) then
      return name, "must be a whole number from " .. row.least .. " to " .. (row.most or "2^53")
    end
  elseif row.words then
    local verdict = name == "on_timeout" and #value <= 8192 and string.find(value, "^fail: [^\n]+$")
    if not words[name][value] and not verdict then
      return name, "must be " .. table.concat(row.words, ", ", 1, #row.words - 1) .. " or " .. row.words[#row.words]
    end
  else
    local fits, rule = texts[row.text](value)
    if not fits then
      return name, "must be " .. rule
    end
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

local function role(f)
  for _, name in ipairs(of_runs) do
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

-- check returns the error for a single default, or nil.
function kind_defaults.check(name, value, seen)
  if not rows[name] or rows[name].by ~= "kind" then
    return "is not a default of a kind"
  elseif value == "none" and name ~= "timeout_ms" then
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
  elseif given.warn_percent and (given.timeout_ms or "none") == "none" then
    return "warn_percent", "needs a timeout_ms"
  end
end

-- line returns a default as the root has it. A timeout of none keeps that of the namespace from the tasks. It is stored under another
-- name, which older programs skip: "none" is no number for them.
function kind_defaults.line(name, value)
  return (value == "none" and "timeout" or name) .. "=" .. value
end
