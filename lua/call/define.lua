-- define: a worker or a client sets the defaults of a kind. They apply to fields that a producer leaves out. The
-- call replaces all defaults that the kind had, unless "existing" is "keep".
--
-- ARGV[1]  kind
-- ARGV[2…] name, value, …, of: timeout_ms, queue_timeout_ms, attempt_timeout_ms, on_timeout, warn_percent,
--          cancel_grace_ms, timeout_grace_ms, max_retries, backoff, backoff_ms, backoff_max_ms, jitter, retry_expression,
--          retention_ms, on_deadline; none given: the kind has no defaults. "existing" "keep" stores them only
--          if the kind has none
--
-- Returns  {"OK"}
--          {"KEPT"}                 with "keep": the kind has other defaults, which stay
--          {"INVALID", field, why}  nothing was changed
-- Flags    allow-oom        workers make this call when they start, and must drain a full Redis
--
-- @use check/fields
-- @use check/names
-- @use store/begin
-- @use store/read_root

local allowed = {
  timeout_ms = true, queue_timeout_ms = true, attempt_timeout_ms = true, on_timeout = true, warn_percent = true,
  cancel_grace_ms = true, timeout_grace_ms = true, max_retries = true, backoff = true, backoff_ms = true, backoff_max_ms = true, jitter = true,
  retry_expression = true, retention_ms = true, on_deadline = true,
}

-- one returns what is wrong with one default, or nil.
local function one(name, value, seen)
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
local function together(given)
  if given.retry_expression and tonumber(given.max_retries or 0) < 1 then
    return "retry_expression", "needs max_retries of at least 1"
  elseif given.on_timeout == "retry" and tonumber(given.max_retries or 0) < 1 then
    return "on_timeout", "is retry, which needs max_retries of at least 1"
  elseif given.warn_percent and not given.timeout_ms then
    return "warn_percent", "needs a timeout_ms"
  end
end

-- same reports whether two lists of defaults are equal, whatever their order.
local function same(lines, stored)
  local others = {}
  for line in string.gmatch(stored, "[^\n]+") do
    others[#others + 1] = line
  end
  table.sort(lines)
  table.sort(others)
  return table.concat(lines, "\n") == table.concat(others, "\n")
end

-- store writes the defaults, unless the kind has some and keep is set.
local function store(root, kind, lines, keep)
  local field = "kind:" .. kind
  local stored = keep and redis.call("HGET", root, field)
  if stored then
    return {same(lines, stored) and "OK" or "KEPT"}
  elseif #lines == 0 then
    redis.call("HDEL", root, field)
  else
    redis.call("HSET", root, field, table.concat(lines, "\n"))
  end
  return {"OK"}
end

local function define(keys, argv)
  local kind, given, lines, keep = argv[1], {}, {}, nil
  local field, why = names.kind(kind)
  if field then
    return {"INVALID", field, why}
  end
  for i = 2, #argv, 2 do
    local name, value = argv[i], argv[i + 1] or ""
    if name == "existing" and value == "keep" then
      keep = true
    else
      why = one(name, value, given)
      if why then
        return {"INVALID", name, why}
      end
      given[name] = value
      lines[#lines + 1] = name .. "=" .. value
    end
  end
  field, why = fields(given)
  if not field then
    field, why = together(given)
  end
  if field then
    return {"INVALID", field, why}
  end
  local tx = read_root(begin(keys[1]))
  return store(tx.key.root, kind, lines, keep)
end
