-- curfew_enqueue_many: enqueues up to 500 tasks, all or none.
--
-- KEYS[1]  root of a partition
-- ARGV[1]  a JSON array of objects, up to 1 MiB: kind, and the names and values of curfew_enqueue. The payload is any JSON value;
--          its text is stored. Headers are an object. Other values are strings or numbers; null is as if it were absent
--
-- Returns  for each task {"id", id, "deadline_at", ms, "new", n}: deadline_at only if it has one; new is 0 for a
--          task that existed before
-- Flags
--
-- @use named/json: read_json
-- @use named/options: options, reject, root_of
-- @use named/reply
-- @use named/task: read_task, store_tasks
local raw = {payload = true, headers = true} -- values that are stored as they were written

local function tasks_of(objects)
  local tasks = {}
  for n, object in ipairs(objects) do
    local prefix, args = "task " .. n .. ": ", {}
    for name, value in pairs(object) do
      if name ~= "kind" then
        options.check(name, args, read_task.parameters, prefix)
        args[name] = value or name == "payload" and "null" or nil
      end
    end
    if not object.kind then
      reject("INVALID", prefix .. "there is no kind")
    end
    tasks[n] = {kind = object.kind, args = args, prefix = prefix}
  end
  return tasks
end

local function enqueue_many(keys, argv)
  local root = root_of(keys)
  if #argv ~= 1 or #argv[1] > 1048576 then
    reject("INVALID", "give one JSON array of tasks, of up to 1 MiB")
  end
  local tasks, receipts = tasks_of(read_json(argv[1], raw, 500)), {}
  for n, receipt in ipairs(store_tasks(root, tasks)) do
    local words = {"id", receipt[1]}
    if receipt[2] ~= "" then
      words[3], words[4] = "deadline_at", receipt[2]
    end
    words[#words + 1] = "new"
    words[#words + 1] = receipt[3]
    receipts[n] = words
  end
  return receipts
end

local function curfew_enqueue_many(keys, argv)
  return reply(enqueue_many, keys, argv)
end
