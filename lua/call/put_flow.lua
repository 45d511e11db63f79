-- put_flow stores a version of a flow's definition, and applies its defaults to the kind of its runs. A stored version never
-- changes, because runs follow it. Partition 0 is called first, and is the only one that stores the text.
--
-- ARGV[1]  id of the definition
-- ARGV[2]  version; empty: the newest version if its text is the same, otherwise the next number
-- ARGV[3]  text, up to 1 MiB; of a partition other than 0: empty
-- ARGV[4]  empty; of a partition other than 0: the number that partition 0 returned
-- ARGV[5…] name, value, …: defaults of the kind (call/define.lua). Only the newest version gives them, once
--
-- Returns  {"OK", version, "1", number}   it is stored, and is the newest
--          {"OK", version, "0", number}   it was stored before, with the same text; the number is 0 if it is not the newest
--          {"CONFLICT", version}          the version exists with another text: nothing was changed
--          {"INVALID", field, why}        nothing was changed
-- Flags
--
-- @use check/fields: fields, kind_defaults
-- @use check/values: digits, flow_names
-- @use store/later
-- @use store/tell: answer
-- @use store/tx: begin, read_root
-- @use task/kind_of_flow
-- @use unit/unit

-- flow_defaults reads the defaults for the kind of the runs, names and values from argument `first` on. It returns them by
-- name; or nil, the invalid field, and the error.
local function flow_defaults(argv, first)
  local given = {}
  for i = first, #argv, 2 do
    local name, value = argv[i], argv[i + 1] or ""
    local fault = kind_defaults.check(name, value, given)
    if fault then
      return nil, name, fault
    end
    given[name] = value
  end
  local field, fault = fields(given)
  if field then
    return nil, field, fault
  end
  return given
end

-- most is the largest number of versions of a definition.
local most = 10000

-- next_version returns the number after the greatest numeric version, or nil if it would be too long.
local function next_version(versions)
  local greatest = 0
  for version in string.gmatch(versions, "%S+") do
    if digits(version) then
      greatest = math.max(greatest, tonumber(version))
    end
  end
  return greatest < 999999999999999 and string.format("%.0f", greatest + 1) or nil
end

local function put(tx, id, version, text, given)
  local key, versions = tx.key.flow .. id, redis.call("HGET", tx.key.flows, id) or ""
  local newest, count = string.match(versions, "%S+$"), redis.call("HLEN", key)
  if version == "" and newest and redis.call("HGET", key, newest) == text then
    return {"OK", newest, "0", tostring(count)}
  elseif version == "" then
    version = next_version(versions)
  end
  local there = version and redis.call("HGET", key, version)
  if there then
    return there == text and {"OK", version, "0", version == newest and tostring(count) or "0"} or {"CONFLICT", version}
  elseif not version then
    return {"INVALID", "version", "must be given: no number of up to 15 digits follows the newest one"}
  elseif count >= most then
    return {"INVALID", "version", "cannot be added: the definition has " .. most .. " versions, so give it a new id"}
  end
  local field, fault = kind_of_flow(tx, id, count + 1, given)
  if field then
    return {"INVALID", field, fault}
  end
  later.before(tx, "HSET", key, version, text)
  later.after(tx, "HSET", tx.key.flows, id, (newest and versions .. " " or "") .. version)
  return {"OK", version, "1", tostring(count + 1)}
end

-- follow applies the defaults of the kind in a partition other than 0.
local function follow(tx, id, version, number, given)
  local field, fault = kind_of_flow(tx, id, number, given)
  return field and {"INVALID", field, fault} or {"OK", version, "0", tostring(number)}
end

local function put_flow(keys, argv)
  local id, version, text, number = argv[1], argv[2], argv[3] or "", argv[4] or ""
  local field, fault, given = flow_names(id, version)
  if not field then
    given, field, fault = flow_defaults(argv, 5)
  end
  if field then
    return {"INVALID", field, fault}
  elseif number ~= "" and not digits(number) then
    return {"INVALID", "number", "must be that of the version in partition 0"}
  elseif number == "" and (#text > 1048576 or text == "") then
    return {"INVALID", "definition", "must have 1 to 1048576 bytes, and has " .. #text}
  end
  local tx = read_root(begin(keys[1]))
  if number ~= "" then
    return answer(tx, unit(tx, follow, id, version, tonumber(number), given))
  end
  return answer(tx, unit(tx, put, id, version, text, given))
end
