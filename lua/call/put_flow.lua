-- put_flow stores a version of the definition of a flow, and what it says of the kind of its runs. A version that is stored
-- never changes, since runs follow it. Partition 0 is called first. The others only have the defaults of the kind.
--
-- ARGV[1]  id of the definition
-- ARGV[2]  version; empty: that of the newest one if its text is the same, otherwise the next number
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

-- flow_defaults reads the defaults that a definition gives the kind of its runs: name, value, … from an argument on. It
-- returns them by field; or nil, the field that is wrong, and why.
local function flow_defaults(argv, first)
  local given = {}
  for i = first, #argv, 2 do
    local name, value = argv[i], argv[i + 1] or ""
    local why = kind_defaults.one(name, value, given)
    if why then
      return nil, name, why
    end
    given[name] = value
  end
  local field, why = fields(given)
  if field then
    return nil, field, why
  end
  return given
end

-- most is how many versions a definition can have.
local most = 10000

-- next_version returns the number that follows the greatest version which is a number; nil: it would be too long.
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
  local field, why = kind_of_flow(tx, id, count + 1, given)
  if field then
    return {"INVALID", field, why}
  end
  later.before(tx, "HSET", key, version, text)
  later.after(tx, "HSET", tx.key.flows, id, (newest and versions .. " " or "") .. version)
  return {"OK", version, "1", tostring(count + 1)}
end

-- follow gives a partition other than 0 the defaults of the kind.
local function follow(tx, id, version, number, given)
  local field, why = kind_of_flow(tx, id, number, given)
  return field and {"INVALID", field, why} or {"OK", version, "0", tostring(number)}
end

local function put_flow(keys, argv)
  local id, version, text, number = argv[1], argv[2], argv[3] or "", argv[4] or ""
  local field, why, given = flow_names(id, version)
  if not field then
    given, field, why = flow_defaults(argv, 5)
  end
  if field then
    return {"INVALID", field, why}
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
