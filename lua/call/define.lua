-- define: a worker or a client sets the defaults of a kind. They apply to fields that a producer leaves out. The
-- call replaces all defaults that the kind had, unless "existing" is "keep".
--
-- ARGV[1]  kind
-- ARGV[2…] name, value, … of the fields that kinds can have defaults of (store/task_fields.lua); none given: the kind has no
--          defaults. timeout_ms can be "none". "existing" "keep" stores them only if the kind has none
--
-- Returns  {"OK"}
--          {"KEPT"}                 with "keep": the kind has other defaults, which stay
--          {"INVALID", field, why}  nothing was changed
-- Flags    allow-oom        workers make this call when they start, and must drain a full Redis
--
-- @use check/fields: fields, kind_defaults
-- @use check/values: names
-- @use store/tx: begin, read_root

-- same reports whether two lists of defaults are equal in any order.
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
  local field, fault = names.kind(kind)
  if not field and argv[2] and (kind == "flow/wait" or kind == "flow/sleep") then
    field, fault = "kind", "cannot have defaults: flows use it for themselves"
  end
  if field then
    return {"INVALID", field, fault}
  end
  for i = 2, #argv, 2 do
    local name, value = argv[i], argv[i + 1] or ""
    if name == "existing" and value == "keep" then
      keep = true
    else
      fault = kind_defaults.check(name, value, given)
      if fault then
        return {"INVALID", string.sub(name, 1, 128), fault}
      end
      given[name] = value
      lines[#lines + 1] = kind_defaults.line(name, value)
    end
  end
  field, fault = fields(given)
  if not field then
    field, fault = kind_defaults.together(given)
  end
  if field then
    return {"INVALID", field, fault}
  end
  local tx = read_root(begin(keys[1]))
  return store(tx.key.root, kind, lines, keep)
end
