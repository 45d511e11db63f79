-- curfew_get: reads a task. It changes nothing.
--
-- KEYS[1]  root of a partition
-- ARGV[1]  id
--
-- Returns  {"id", id, "status", status, "kind", kind, …}: names and values of the record (docs/reference/keys.md), and "payload";
--          "overdue", "1" if its time is up and its end is not written yet
-- Flags    no-writes
--
-- @use call/read
-- @use named/options: first, id_of, options, reject, root_of
-- @use named/reply
local function get(keys, argv)
  local root = root_of(keys)
  local id = id_of(first(argv, "the id"), root)
  options.read(argv, 2, {})
  local record = read(keys, {id})[2]
  if not record[1] then
    reject("MISSING", "there is no task " .. id)
  end
  local words = {"id", id}
  for i = 3, #record do
    words[i] = record[i]
  end
  for _, word in ipairs({"payload", record[2], "overdue", tostring(record[1])}) do
    words[#words + 1] = word
  end
  return words
end

local function curfew_get(keys, argv)
  return reply(get, keys, argv)
end
