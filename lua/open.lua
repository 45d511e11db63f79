-- open: somebody opens the namespace. The first makes the partition's root,
-- which exists from then on; everybody else compares.
--
-- KEYS[1]  root of the partition
-- ARGV[1]  version of the records that the caller knows
-- ARGV[2]  how many partitions; 0: as many as there are, 1 if it is new
-- ARGV[3]  level of events for a new namespace: all, terminal, none
--
-- Returns  {"OK", partitions, now}
--          {"NEWER", version}         its records are of a version that the caller does not know
--          {"PARTITIONS", partitions} it has another number of partitions
-- Flags    allow-oom        opening must work on a full Redis
--
-- @include keys
-- @include now

local k, at = keys(KEYS[1]), now()
local version, wanted = tonumber(ARGV[1]), tonumber(ARGV[2])
local old = redis.call("HMGET", k.root, "version", "partitions")
if old[1] then
  if tonumber(old[1]) > version then
    return {"NEWER", old[1]}
  end
  if wanted > 0 and wanted ~= tonumber(old[2]) then
    return {"PARTITIONS", old[2]}
  end
  return {"OK", old[2] or "", at}
end
if wanted == 0 then
  wanted = 1
end
redis.call("HSET", k.root, "version", version, "partitions", wanted, "created_at", at, "events", ARGV[3])
return {"OK", wanted, at}
