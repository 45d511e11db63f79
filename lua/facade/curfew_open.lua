-- curfew_open: creates a partition of a namespace. If the namespace exists, its settings stay and the reply has them, and the
-- number of partitions must be the same. Open each partition once.
--
-- KEYS[1]  root of the partition
-- ARGV     partitions  how many the namespace has, 1 to 999; absent: as it is, or 1 if it is new
--          events      level of events of a new namespace: all, terminal, none; absent: terminal
--          event_mib   how many MiB of events it keeps, about; absent: 64
--          figures     whether ends are counted by kind: on, off; absent: on
--
-- Returns  {"namespace", name, "partition", n, "partitions", n, "now", ms, "events", level, "event_mib", n, "figures", "on" or "off"}
-- Flags    allow-oom        opening must work on a full Redis
--
-- @use call/open
-- @use named/options: count_of, options, reject, root_of
-- @use named/reply
-- @use store/tx: supported
-- @use store/versions
local parameters = {partitions = true, events = true, event_mib = true, figures = true}

local function open_partition(keys, argv)
  local root, namespace = root_of(keys)
  local args = options.read(argv, 1, parameters)
  local partitions = count_of(args, "partitions", "0", args.partitions and 1 or 0, 999)
  local answer = open(keys, {string.format("%d", versions.newest), partitions, args.events or "terminal", count_of(args, "event_mib", "0", 0, 65536), args.figures or "on", "produce"})
  local word, value, instant = answer[1], answer[2], answer[3]
  if word == "VERSION" then
    supported(root, value)
  elseif word == "PARTITIONS" then
    reject("NAMESPACE", namespace .. " has " .. value .. " partitions, which cannot change: give partitions " .. value)
  elseif word == "RIGHTS" then
    reject("NAMESPACE", "the Redis user lacks rights: ACL SETUSER " .. table.concat(answer, " ", 2))
  elseif word == "INVALID" then
    reject("INVALID", value .. " " .. answer[3])
  end
  return {"namespace", namespace, "partition", string.match(root, "{(%d+)}$"), "partitions", tostring(value), "now", string.format("%d", instant),
    "events", answer[4], "event_mib", answer[5], "figures", answer[6]}
end

local function curfew_open(keys, argv)
  return reply(open_partition, keys, argv)
end
