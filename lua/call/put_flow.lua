-- put_flow stores a version of the definition of a flow. A version that is stored never changes, since runs follow it.
--
-- ARGV[1]  id of the definition
-- ARGV[2]  version; empty: that of the newest one if its text is the same, otherwise the next number
-- ARGV[3]  text, up to 1 MiB
--
-- Returns  {"OK", version, "1"}       it is stored, and is the newest
--          {"OK", version, "0"}       it was stored before, with the same text
--          {"CONFLICT", version}      the version exists with another text: nothing was changed
--          {"INVALID", field, why}    nothing was changed
-- Flags
--
-- @use check/digits
-- @use check/flow_names
-- @use store/answer
-- @use store/begin
-- @use store/later
-- @use store/read_root
-- @use store/unit

-- most is how many versions a definition can have.
local most = 10000

-- next_version returns the number that follows the greatest version which is a number.
local function next_version(versions)
  local greatest = 0
  for version in string.gmatch(versions, "%S+") do
    if digits(version) and #version < 10 then
      greatest = math.max(greatest, tonumber(version))
    end
  end
  return string.format("%d", greatest + 1)
end

local function put(tx, id, version, text)
  local key = tx.key.flow .. id
  local versions = redis.call("HGET", tx.key.flows, id) or ""
  local newest = string.match(versions, "%S+$")
  if version == "" and newest and redis.call("HGET", key, newest) == text then
    return {"OK", newest, "0"}
  elseif version == "" then
    version = next_version(versions)
  end
  local there = redis.call("HGET", key, version)
  if there then
    return there == text and {"OK", version, "0"} or {"CONFLICT", version}
  elseif redis.call("HLEN", key) >= most then
    return {"INVALID", "version", "cannot be added: the definition has " .. most .. " versions, so give it a new id"}
  end
  later.before(tx, "HSET", key, version, text)
  later.after(tx, "HSET", tx.key.flows, id, (newest and versions .. " " or "") .. version)
  return {"OK", version, "1"}
end

local function put_flow(keys, argv)
  local id, version, text = argv[1], argv[2], argv[3] or ""
  local field, why = flow_names(id, version)
  if field then
    return {"INVALID", field, why}
  elseif #text > 1048576 or text == "" then
    return {"INVALID", "definition", "must have 1 to 1048576 bytes, and has " .. #text}
  end
  local tx = read_root(begin(keys[1]))
  return answer(tx, unit(tx, put, id, version, text))
end
