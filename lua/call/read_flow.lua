-- read_flow: returns the definition of a flow, or lists definitions or versions.
--
-- ARGV[1]  id; empty: lists the ids
-- ARGV[2]  version; empty: the newest; *: lists the versions
--
-- Returns  {now, version, text}
--          {now, "MISSING"}                there is no such definition
--          {now, id, versions, …}          the ids, in no order, each with its versions, the oldest first and separated by
--                                          spaces
--          {now, newest version, version, …}  the list of versions, the oldest first
-- Flags    no-writes
--
-- @use check/values: flow_names
-- @use store/tx: begin_read
local function read_flow(keys, argv)
  local id, version = argv[1] or "", argv[2] or ""
  local field, fault
  if id ~= "" then
    field, fault = flow_names(id, version == "*" and "" or version)
  end
  if field then
    error("the " .. field .. " " .. fault, 0)
  end
  local tx = begin_read(keys[1])
  if id == "" then
    local flows = redis.call("HGETALL", tx.key.flows)
    table.insert(flows, 1, tx.at)
    return flows
  end
  local versions = redis.call("HGET", tx.key.flows, id)
  if not versions then
    return {tx.at, "MISSING"}
  elseif version == "*" then
    local answer = {tx.at, string.match(versions, "%S+$")}
    for each in string.gmatch(versions, "%S+") do
      answer[#answer + 1] = each
    end
    return answer
  elseif version == "" then
    version = string.match(versions, "%S+$")
  end
  local text = redis.call("HGET", tx.key.flow .. id, version)
  if not text then
    return {tx.at, "MISSING"}
  end
  return {tx.at, version, text}
end
