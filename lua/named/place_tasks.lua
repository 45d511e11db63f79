-- place_tasks gives each task its shape, its id and its payload. A task whose id or idempotency key belongs to another
-- partition is rejected.
--
--   read  fields, none, id or nil, payload and what of each (named/read_task.lua)
--
-- Returns the tasks as task/read_tasks.lua has them
--
-- @use named/clip
-- @use named/crc32
-- @use named/id_of
-- @use named/new_id
-- @use named/reject

-- same_shape returns a text that is equal for equal fields.
local function same_shape(fields)
  local words = {}
  for name, value in pairs(fields) do
    words[#words + 1] = name .. ":" .. #value .. ":" .. value
  end
  table.sort(words)
  return table.concat(words, " ")
end

local function check_key(tx, key, partitions, what)
  local partition = partitions > 1 and string.format("%d", crc32(key) % partitions) or tx.key.partition
  if partition ~= tx.key.partition then
    reject("PARTITION", what .. 'the idempotency key "' .. clip(key) .. '" belongs to partition ' .. partition .. ": use the key " ..
      string.gsub(tx.key.root, "%d+}$", partition .. "}"))
  end
end

local function place_tasks(tx, read)
  local shapes, tasks, partitions = {}, {}, nil
  for n, task in ipairs(read) do
    local id, key = task.id, task.fields.idempotency_key
    if id then
      id_of(id, tx.key.root, task.what)
    end
    if key then
      partitions = partitions or tonumber(redis.call("HGET", tx.key.root, "partitions") or 1)
      check_key(tx, key, partitions, task.what)
    end
    local same = read[2] and same_shape(task.fields) or ""
    shapes[same] = shapes[same] or {fields = task.fields, none = task.none}
    tasks[n] = {shape = shapes[same], id = id or new_id(tx), payload = task.payload}
  end
  return tasks
end
