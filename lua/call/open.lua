-- open: a client opens the namespace. The first call makes the root of the partition, which is never removed.
-- Later calls compare.
--
-- ARGV[1]  version of the records of a new namespace
-- ARGV[2]  how many partitions; 0: as many as the namespace has, 1 if it is new
-- ARGV[3]  level of events of a new namespace: all, terminal, none
-- ARGV[4]  about how many MiB of events a new namespace keeps, 1 to 65536; 0 or absent: 64
-- ARGV[5]  whether a new namespace counts ends by kind (store/figures.lua): on, off; absent: on
-- ARGV[6]  what the caller does, and needs rights for: produce, work, reap, read, all; absent: all
-- ARGV[7]  whether a namespace that does not exist is made: new, existing; absent: new
--
-- Returns  {"OK", partitions, now, events, event_mib, figures}  the last three as the namespace has them
--          {"VERSION", version, oldest, newest}  its records have a version that this library does not support
--          {"PARTITIONS", partitions} it has another number of partitions
--          {"MISSING"}                the namespace does not exist, and access read and existing do not make it
--          {"RIGHTS", word, …}        the user lacks rights; words as ACL SETUSER takes them. Nothing was changed
--          {"INVALID", field, why}    nothing was changed
-- Flags    allow-oom        opening must work on a full Redis
--
-- @use check/values: setting, whole
-- @use store/keys
-- @use store/rights: lacking
-- @use store/tx: begin
-- @use store/versions

local accesses = {produce = true, work = true, reap = true, read = true, all = true}

-- unfit checks the name of the root and the arguments. It returns the invalid field and the error, or nil.
local function unfit(tx, version, wanted, argv)
  local partition = whole(tx.key.partition, 0, 998)
  if not version then
    return "version", string.format("must be a whole number from %d to %d", versions.oldest, versions.newest)
  elseif not wanted then
    return "partitions", "must be a whole number from 0 to 999"
  elseif setting("events", argv[3]) then
    return "events", setting("events", argv[3])
  elseif not whole(argv[4] or "0", 0, 65536) then
    return "event_mib", "must be a whole number from 0 to 65536"
  elseif setting("figures", argv[5] or "on") then
    return "figures", setting("figures", argv[5])
  elseif not accesses[argv[6] or "all"] then
    return "access", "must be produce, work, reap, read or all"
  elseif argv[7] and argv[7] ~= "new" and argv[7] ~= "existing" then
    return "make", "must be new or existing"
  elseif not partition or tx.key.partition ~= string.format("%d", partition) then
    return "root", "must end with the number of the partition in braces, as curfew:{0} does"
  elseif partition >= math.max(wanted, 1) and wanted > 0 then
    return "root", "names partition " .. tx.key.partition .. ", and the number of partitions is " .. wanted
  end
end

local function open(given, argv)
  local access = argv[6] or "all"
  local lacks = lacking(keys.of(given[1]), accesses[access] and access or "all")
  if lacks[1] then
    return {"RIGHTS", unpack(lacks)}
  end
  local tx = begin(given[1])
  local version, wanted = whole(argv[1], versions.oldest, versions.newest), whole(argv[2], 0, 999)
  local field, fault = unfit(tx, version, wanted, argv)
  if field then
    return {"INVALID", field, fault}
  end
  local old = redis.call("HMGET", tx.key.root, "version", "partitions", "events", "event_mib", "figures")
  if old[1] and not whole(old[1], versions.oldest, versions.newest) then
    return {"VERSION", old[1], versions.oldest, versions.newest}
  elseif old[1] and wanted > 0 and wanted ~= tonumber(old[2]) then
    return {"PARTITIONS", old[2] or ""}
  elseif old[1] then
    return {"OK", old[2] or "", tx.at, old[3] or "terminal", old[4] or "64", old[5] or "on"}
  elseif access == "read" or argv[7] == "existing" then
    return {"MISSING"}
  elseif wanted == 0 and tx.key.partition ~= "0" then
    return {"INVALID", "partitions", "must be given for the first call of any partition but 0"}
  end
  wanted = math.max(wanted, 1)
  redis.call("HSET", tx.key.root, "version", argv[1], "partitions", string.format("%d", wanted), "created_at", tx.now, "events", argv[3],
    unpack(argv[5] == "off" and {"figures", "off"} or {}))
  local mib = tonumber(argv[4] or 0)
  if mib > 0 then
    redis.call("HSET", tx.key.root, "event_mib", argv[4])
  end
  return {"OK", wanted, tx.at, argv[3], mib > 0 and argv[4] or "64", argv[5] or "on"}
end
