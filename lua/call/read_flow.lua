-- read_flow returns a definition of a flow, or lists definitions.
--
-- ARGV[1]  id; empty: lists the ids
-- ARGV[2]  version; empty: the newest; *: lists the versions
--
-- Returns  {now, version, text}
--          {now, "MISSING"}                there is no such definition
--          {now, id, newest version, …}    the list of ids, in no order
--          {now, newest version, version, …}  the list of versions, in no order
-- Flags    no-writes
--
-- @use check/flow_names
-- @use store/begin_read
local function read_flow(keys, argv)
  local id, version = argv[1] or "", argv[2] or ""
  local field, why
  if id ~= "" then
    field, why = flow_names(id, version == "*" and "" or version)
  end
  if field then
    error("the " .. field .. " " .. why, 0)
  end
  local tx = begin_read(keys[1])
  if id == "" then
    return {tx.at, unpack(redis.call("HGETALL", tx.key.flows))}
  end
  local newest = redis.call("HGET", tx.key.flows, id)
  if not newest then
    return {tx.at, "MISSING"}
  elseif version == "*" then
    return {tx.at, newest, unpack(redis.call("HKEYS", tx.key.flow .. id))}
  elseif version == "" then
    version = newest
  end
  local text = redis.call("HGET", tx.key.flow .. id, version)
  if not text then
    return {tx.at, "MISSING"}
  end
  return {tx.at, version, text}
end
