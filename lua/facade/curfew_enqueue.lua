-- curfew_enqueue: enqueues one task.
--
-- KEYS[1]  root of a partition
-- ARGV[1]  kind
-- ARGV[2…] names and values (named/task.lua); a duration is 30s, or 30000 with _ms behind its name
--
-- Returns the id of the task: the new one, or the one that its idempotency key belongs to
-- Flags
--
-- @use named/options: options, reject, root_of
-- @use named/reply
-- @use named/task: read_task, store_tasks
local function enqueue(keys, argv)
  local root = root_of(keys)
  if not argv[1] then
    reject("INVALID", "there is no kind: give it first, then names and values")
  end
  local task = {kind = argv[1], args = options.read(argv, 2, read_task.parameters), prefix = ""}
  return store_tasks(root, {task})[1][1]
end

local function curfew_enqueue(keys, argv)
  return reply(enqueue, keys, argv)
end
