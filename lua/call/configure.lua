-- configure: a client changes settings of the namespace. All calls read them from the root, so they apply to the next
-- call of every program.
--
-- ARGV[1…] name, value, …, of: events (all, terminal, none), event_mib (1 to 65536), figures (on, off), and
--          default_timeout_ms (ms, none), the timeout of root tasks that have no deadline (task/plan.lua). Other settings stay
--
-- Returns  {"OK"}
--          {"INVALID", field, why}  nothing was changed
-- Flags    allow-oom        to write fewer events must work on a full Redis
--
-- @use check/values: setting
-- @use store/tx: begin_read
local function configure(keys, argv)
  local fields, given = {}, {}
  for i = 1, #argv, 2 do
    local name, value = argv[i], argv[i + 1] or ""
    local fault = given[name] and "is given twice" or setting(name, value)
    if fault then
      return {"INVALID", string.sub(name, 1, 128), fault}
    end
    given[name] = true
    fields[#fields + 1], fields[#fields + 2] = name, value
  end
  local tx = begin_read(keys[1])
  if fields[1] then
    redis.call("HSET", tx.key.root, unpack(fields))
  end
  return {"OK"}
end
