-- Tasks by named fields.
--
-- @use check/values: names
-- @use named/json: is_json
-- @use named/options: clip, id_of, reject, span
-- @use store/task_fields
-- @use store/tx: begin, last, read_root
-- @use task/enqueue: enqueue_all
-- @use unit/unit

-- read_task makes a task of its kind and its named fields. A duration has a unit (timeout 30s), or its name ends with _ms.
--
--   args    name: value
--   prefix  the beginning of an error: "" or "task 3: "
--
-- Returns fields (of its shape, see call/enqueue.lua), arguments (the argument that set each field, for errors), none (whether the
--         value of any is "none"), id or nil, payload, and prefix
local read_task = {}

-- field_of maps an argument that is a duration to its field. spans are those with a unit; the names of the others end with _ms.
local field_of, spans = {}, {}

read_task.parameters = {kind = "first", id = true, payload = true}
for i = 1, #task_fields do -- ipairs does not exist while a library is being loaded
  local row = task_fields[i]
  if row.unit then
    spans[row.unit], field_of[row.unit], field_of[row.unit .. "_ms"] = true, row[1], row[1]
    read_task.parameters[row.unit], read_task.parameters[row.unit .. "_ms"] = true, true
  elseif row[1] ~= "kind" and (not row.by or row.by == "kind") then
    read_task.parameters[row[1]] = true
  end
end

-- check_headers rejects headers that a worker in some language could not parse.
local function check_headers(text, prefix)
  local ok, headers = pcall(cjson.decode, text)
  ok = ok and type(headers) == "table" and string.find(text, "^%s*{") and is_json(text)
  for name, value in pairs(ok and headers or {}) do
    ok = ok and type(name) == "string" and type(value) == "string"
  end
  if not ok then
    reject("INVALID", prefix .. 'headers must be a JSON object of strings, such as {"traceparent":"00-…"}')
  end
end

-- in_ms converts each duration to ms. It returns the fields, the argument that set each, and whether the value of any field
-- is "none".
local function in_ms(args, prefix)
  local fields, arguments, none = {}, {}, false
  for name, value in pairs(args) do
    local field = field_of[name] or name
    if fields[field] then
      local plain = string.gsub(name, "_ms$", "")
      reject("INVALID", prefix .. "give " .. plain .. " or " .. plain .. "_ms, and not both")
    end
    if value == "none" then
      none = true
    elseif spans[name] then
      value = span(value, name, prefix)
    end
    fields[field], arguments[field] = value, name
  end
  return fields, arguments, none
end

-- whole_backoff rejects a part of a back-off without its delay, and completes one with a delay, because it replaces that of the kind as a
-- whole. So the fields mean the same as in Go, over HTTP and in commands. It returns whether a field is "none" now.
local function whole_backoff(fields, none, prefix)
  local delay = fields.backoff_ms
  if not delay then
    if fields.backoff or fields.backoff_max_ms or fields.jitter then
      reject("INVALID", prefix .. "backoff_delay is missing: backoff, backoff_max and jitter need it")
    end
    return none
  elseif delay == "none" then
    return none
  end
  fields.backoff, fields.jitter = fields.backoff or "constant", fields.jitter or "0"
  none = none or not fields.backoff_max_ms
  fields.backoff_max_ms = fields.backoff_max_ms or "none"
  return none
end

function read_task.read(kind, args, prefix)
  local field, fault = names.kind(kind)
  if not field and string.find(kind, "^flow/") then -- task/plan.lua lets runs make them as children, and retry them
    field, fault = "kind", "is for nodes of flows, which their runs enqueue: use another kind"
  end
  if field then
    reject("INVALID", prefix .. field .. " " .. fault)
  end
  local fields, arguments, none = in_ms(args, prefix)
  none = whole_backoff(fields, none, prefix)
  local id, payload = fields.id, fields.payload or ""
  fields.id, fields.payload, fields.kind = nil, nil, kind
  fields.queue = fields.queue or "default"
  if fields.headers then
    check_headers(fields.headers, prefix)
  end
  return {fields = fields, arguments = arguments, none = none, id = id, payload = payload, prefix = prefix}
end

local refusals = {
  INVALID = function(answer, arguments)
    local field, fault = answer[2], answer[3]
    local name = arguments[field] or field
    if name ~= field and not string.find(name, "_ms$") then
      fault = string.gsub(fault, "a whole number from (%d+) to 2%^53", "at least %1ms")
    end
    return name .. " " .. fault
  end,
  TAKEN = function(answer)
    return "the id " .. answer[2] .. " belongs to another task: use a new id"
  end,
  CONFLICT = function(answer)
    return "the idempotency key belongs to " .. answer[2] .. ", which has another kind or payload"
  end,
  FULL = function(answer)
    return "the queue " .. answer[2] .. " has reached its max_length of " .. answer[3] .. " in this partition: enqueue the task again later"
  end,
  OWNER = function(answer)
    return "the owner " .. answer[2] .. (answer[3] == "" and " does not exist" or " has ended: it is " .. answer[3])
  end,
  BROKEN = function(answer)
    return answer[2] .. " cannot be created: " .. answer[3]
  end,
}

-- refusal returns the sentence for an answer of call/enqueue.lua that refuses a task, or nil.
--
--   arguments  the argument that set each field
local function refusal(answer, arguments)
  local sentence = refusals[answer[1]]
  return sentence and sentence(answer, arguments)
end

local alphabet = {[0] = "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "A", "B", "C", "D", "E", "F", "G", "H", "J", "K", "M", "N",
  "P", "Q", "R", "S", "T", "V", "W", "X", "Y", "Z"}

local function digits(n, width)
  local list = {}
  for i = width, 1, -1 do
    local digit = n % 32
    list[i], n = alphabet[digit], (n - digit) / 32
  end
  return table.concat(list)
end

-- new_id makes the id of a task: the partition, a dash, 9 base-32 digits of the time in ms and 7 of the partition's
-- sequence (queue/queue.lua), so that ids sort by the time they were made, and each is unique.
local function new_id(tx)
  local newest = tx.last or last(tx)
  newest.seq = newest.seq + 1
  return tx.key.partition .. "-" .. digits(tx.at, 9) .. digits(newest.seq, 7)
end

local halves = {[0] = 0, 498536548, 997073096, 651767980, 1994146192, 1802195444, 1303535960, 1342533948, 3988292384, 4027552580,
  3604390888, 3412177804, 2607071920, 2262029012, 2685067896, 3183342108}

-- slow_xor is for servers whose Lua lacks the library bit.
local function slow_xor(a, b)
  local sum, power = 0, 1
  for _ = 1, 32 do
    local x, y = a % 2, b % 2
    if x ~= y then
      sum = sum + power
    end
    a, b, power = (a - x) / 2, (b - y) / 2, 2 * power
  end
  return sum
end

local function fast_xor(a, b)
  return bit.bxor(a, b) % 4294967296 -- it returns signed numbers
end

-- add_half adds the lower four bits of a number.
local function add_half(xor, c, half)
  return xor(halves[xor(c % 16, half)], (c - c % 16) / 16)
end

-- crc32 returns the IEEE checksum of a text.
local function crc32(text)
  local xor = pcall(fast_xor, 0, 0) and fast_xor or slow_xor
  local c = 4294967295
  for i = 1, #text do
    local byte = string.byte(text, i)
    c = add_half(xor, add_half(xor, c, byte % 16), (byte - byte % 16) / 16)
  end
  return xor(c, 4294967295)
end

-- shape_key returns a text that is equal for equal fields, so that equal tasks share a shape.
local function shape_key(fields)
  local words = {}
  for name, value in pairs(fields) do
    words[#words + 1] = name .. ":" .. #value .. ":" .. value
  end
  table.sort(words)
  return table.concat(words, " ")
end

local function check_key(tx, key, partitions, prefix)
  local partition = partitions > 1 and string.format("%d", crc32(key) % partitions) or tx.key.partition
  if partition ~= tx.key.partition then
    reject("PARTITION", prefix .. 'the idempotency key "' .. clip(key) .. '" belongs to partition ' .. partition .. ": use the key " ..
      string.gsub(tx.key.root, "%d+}$", partition .. "}"))
  end
end

-- place_tasks gives each task its shape, its id and its payload. A task whose id or idempotency key belongs to another
-- partition is rejected.
--
--   read  the tasks, as read_task.read returns them
--
-- Returns the tasks as task/enqueue.lua takes them
local function place_tasks(tx, read)
  local shapes, tasks, partitions = {}, {}, nil
  for n, task in ipairs(read) do
    local id, key = task.id, task.fields.idempotency_key
    if id then
      id_of(id, tx.key.root, task.prefix)
    end
    if key then
      partitions = partitions or tonumber(redis.call("HGET", tx.key.root, "partitions") or 1)
      check_key(tx, key, partitions, task.prefix)
    end
    local shape = read[2] and shape_key(task.fields) or ""
    shapes[shape] = shapes[shape] or {fields = task.fields, none = task.none}
    tasks[n] = {shape = shapes[shape], id = id or new_id(tx), payload = task.payload}
  end
  return tasks
end

-- count_refused counts a task that found its queue full, at once: the unit is thrown away, and its counts with it.
local function count_refused(tx, answer)
  if answer[1] == "FULL" then
    redis.call("HINCRBY", tx.key.queue .. answer[2], "refused", "1")
  end
end

local function enqueue(tx, read)
  local tasks, receipts = place_tasks(tx, read), {}
  for n, answer in ipairs(enqueue_all(tx, tasks)) do
    local created = type(answer) ~= "table"
    local sentence = not created and refusal(answer, read[n].arguments)
    if sentence then
      count_refused(tx, answer)
      tx.on = false -- the caller is at fault, and no record: unit must not put one aside
      reject(answer[1], read[n].prefix .. sentence)
    end
    receipts[n] = created and {tasks[n].id, answer, "1"} or {answer[2], answer[3], "0"}
  end
  return receipts
end

local function read_tasks(tasks)
  local read, kinds, seen = {}, {}, {}
  for n, task in ipairs(tasks) do
    read[n] = read_task.read(task.kind, task.args, task.prefix)
    if not seen[task.kind] then
      seen[task.kind] = true
      kinds[#kinds + 1] = task.kind
    end
  end
  return read, kinds
end

-- store_tasks enqueues all tasks or none.
--
--   tasks  kind, args and prefix of each
--
-- Returns for each {id, deadline_at, new}
local function store_tasks(root, tasks)
  local read, kinds = read_tasks(tasks)
  local tx = read_root(begin(root), kinds)
  tx.strict = true
  local receipts = unit(tx, enqueue, read)
  if tx.reply.failed[1] then
    error(tx.reply.failed[1], 0)
  end
  return receipts
end
