-- place_tasks gives each task its shape, its id and its payload. A task whose id or idempotency key belongs to another
-- partition is rejected.
--
--   read  fields, id or nil, payload, what and none of each (named/store_tasks.lua)
--
-- Returns the tasks as task/read_tasks.lua has them
--
-- @use store/later
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
  if not key or partitions < 2 then
    return
  end
  local partition = string.format("%d", crc32(key) % partitions)
  if partition ~= tx.key.partition then
    reject("PARTITION", what .. 'the idempotency key "' .. clip(key) .. '" belongs to partition ' .. partition .. ": use the key " ..
      string.gsub(tx.key.root, "%d+}$", partition .. "}"))
  end
end

local function place_tasks(tx, read)
  local about, shapes, tasks, made = redis.call("HMGET", tx.key.root, "partitions", "made"), {}, {}, 0
  local partitions, counter = tonumber(about[1] or 1), tonumber(about[2] or 0)
  for n, task in ipairs(read) do
    local id = task.id
    if id then
      id_of(id, tx.key.root, task.what)
    else
      made = made + 1
      id = new_id(tx, counter + made)
    end
    check_key(tx, task.fields.idempotency_key, partitions, task.what)
    local same = same_shape(task.fields)
    shapes[same] = shapes[same] or {fields = task.fields, none = task.none}
    tasks[n] = {shape = shapes[same], id = id, payload = task.payload}
  end
  if made > 0 then
    later.before(tx, "HINCRBY", tx.key.root, "made", string.format("%d", made))
  end
  return tasks
end
