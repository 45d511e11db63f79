-- curfew_about: describes the library and a namespace. It changes nothing.
--
-- KEYS[1]  root of a partition; without a key only the library is described
--
-- Returns  {"build", n, "records", {version, …}} and, with a key,
--          {…, "namespace", name, "partition", n, "partitions", n, "roots", {root, …}, "events", level, "version", n, "now", ms}:
--          partitions is 0 if the namespace was not opened. roots is a list
-- Flags    no-writes
--
-- @use named/facade
-- @use named/options: options, root_of
-- @use named/reply
-- @use store/now
-- @use store/versions
local function about(keys, argv)
  options.read(argv, 1, {})
  local records = {}
  for version = versions.oldest, versions.newest do
    records[#records + 1] = string.format("%d", version)
  end
  local words = {"build", tostring(facade.build), "records", records}
  if #keys == 0 then
    return words
  end
  local root, namespace = root_of(keys)
  local settings, roots = redis.call("HMGET", root, "partitions", "events", "version"), {}
  for n = 1, tonumber(settings[1] or 0) do
    roots[n] = namespace .. ":{" .. n - 1 .. "}"
  end
  for _, word in ipairs({"namespace", namespace, "partition", string.match(root, "{(%d+)}$"), "partitions", settings[1] or "0",
    "roots", roots, "events", settings[2] or "", "version", settings[3] or "", "now", string.format("%d", now(root))}) do
    words[#words + 1] = word
  end
  return words
end

local function curfew_about(keys, argv)
  return reply(about, keys, argv)
end
