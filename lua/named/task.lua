-- Tasks by named fields.
--
-- @use check/values: names
-- @use named/json: is_json
-- @use named/options: clip, id_of, reject, span
-- @use store/tx: begin, last, read_root
-- @use task/enqueue: enqueue_all
-- @use unit/unit

-- read_task makes a task of its kind and its named fields. A duration has a unit (timeout 30s), or its name ends with _ms.
--
--   given  name: value
--   what   how an error begins: "" or "task 3: "
--
-- Returns fields (of its shape, see call/enqueue.lua), told (the name that each was given by), none (whether the value of any is
--         "none"), id or nil, payload, and what
local read_task = {}

-- spans are the fields that are durations, by the name without _ms.
local spans = {timeout = "timeout_ms", delay = "delay_ms", queue_timeout = "queue_timeout_ms", attempt_timeout = "attempt_timeout_ms",
  cancel_grace = "cancel_grace_ms", timeout_grace = "timeout_grace_ms", backoff_delay = "backoff_ms", backoff_max = "backoff_max_ms",
  retention = "retention_ms", idempotency_window = "idempotency_window_ms"}

read_task.known = {kind = "first", id = true, payload = true, queue = true, headers = true, priority = true, timeout = true, timeout_ms = true,
  deadline_at = true, budget_percent = true, on_deadline = true, delay = true, delay_ms = true, available_at = true, queue_timeout = true,
  queue_timeout_ms = true, attempt_timeout = true, attempt_timeout_ms = true, on_timeout = true, warn_percent = true, cancel_grace = true,
  cancel_grace_ms = true, timeout_grace = true, timeout_grace_ms = true, max_retries = true, backoff = true, backoff_delay = true,
  backoff_delay_ms = true, backoff_max = true, backoff_max_ms = true, jitter = true, retry_expression = true, hook_success = true,
  hook_failure = true, hook_timeout = true, hook_cancel = true, role = true, retention = true, retention_ms = true,
  idempotency_key = true, idempotency_scope = true, idempotency_window = true, idempotency_window_ms = true, retry_of = true}

-- headers must be readable for every worker.
local function check_headers(text, what)
  local ok, headers = pcall(cjson.decode, text)
  ok = ok and type(headers) == "table" and string.find(text, "^%s*{") and is_json(text)
  for name, value in pairs(ok and headers or {}) do
    ok = ok and type(name) == "string" and type(value) == "string"
  end
  if not ok then
    reject("INVALID", what .. 'headers must be a JSON object of strings, such as {"traceparent":"00-…"}')
  end
end

-- in_ms converts each duration to ms. It returns the fields, the name that each was given by, and whether the value of any
-- field is "none".
local function in_ms(given, what)
  local fields, told, none = {}, {}, false
  for name, value in pairs(given) do
    local field = spans[name] or name == "backoff_delay_ms" and "backoff_ms" or name
    if fields[field] then
      local plain = string.gsub(name, "_ms$", "")
      reject("INVALID", what .. "give " .. plain .. " or " .. plain .. "_ms, and not both")
    end
    if value == "none" then
      none = true
    elseif spans[name] then
      value = span(value, name, what)
    end
    fields[field], told[field] = value, name
  end
  return fields, told, none
end

function read_task.read(kind, given, what)
  local field, why = names.kind(kind)
  if not field and string.find(kind, "^flow/") then -- task/plan.lua lets runs make them as children, and retry them
    field, why = "kind", "is for nodes of flows, which their runs enqueue: use another kind"
  end
  if field then
    reject("INVALID", what .. field .. " " .. why)
  end
  local fields, told, none = in_ms(given, what)
  local id, payload = fields.id, fields.payload or ""
  fields.id, fields.payload, fields.kind = nil, nil, kind
  fields.queue = fields.queue or "default"
  if fields.headers then
    check_headers(fields.headers, what)
  end
  return {fields = fields, told = told, none = none, id = id, payload = payload, what = what}
end

local refusals = {
  INVALID = function(answer, told)
    local field, why = answer[2], answer[3]
    local name = told[field] or field
    if name ~= field and not string.find(name, "_ms$") then
      why = string.gsub(why, "a whole number from (%d+) to 2%^53", "at least %1ms")
    end
    return name .. " " .. why
  end,
  TAKEN = function(answer)
    return "the id " .. answer[2] .. " belongs to another task: use a new id"
  end,
  CONFLICT = function(answer)
    return "the idempotency key belongs to " .. answer[2] .. ", which has another kind or payload"
  end,
  OWNER = function(answer)
    return "the owner " .. answer[2] .. (answer[3] == "" and " does not exist" or " has ended: it is " .. answer[3])
  end,
  BROKEN = function(answer)
    return answer[2] .. " cannot be created: " .. answer[3]
  end,
}

-- refusal returns why a task was not created, from the answer of call/enqueue.lua; nil if the task exists.
--
--   told  the name that each field was given by
local function refusal(answer, told)
  local why = refusals[answer[1]]
  return why and why(answer, told)
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
  local given = tx.last or last(tx)
  given.seq = given.seq + 1
  return tx.key.partition .. "-" .. digits(tx.at, 9) .. digits(given.seq, 7)
end

local halves = {[0] = 0, 498536548, 997073096, 651767980, 1994146192, 1802195444, 1303535960, 1342533948, 3988292384, 4027552580,
  3604390888, 3412177804, 2607071920, 2262029012, 2685067896, 3183342108}

-- slow_xor serves servers without the library of bits.
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

-- place_tasks gives each task its shape, its id and its payload. A task whose id or idempotency key belongs to another
-- partition is rejected.
--
--   read  fields, none, id or nil, payload and what of each, as read_task.read returns them
--
-- Returns the tasks as task/enqueue.lua has them
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

local function enqueue(tx, read)
  local tasks, receipts = place_tasks(tx, read), {}
  for n, answer in ipairs(enqueue_all(tx, tasks)) do
    local found = type(answer) == "table"
    local why = found and refusal(answer, read[n].told)
    if why then
      tx.on = false -- no record is at fault
      reject(answer[1], read[n].what .. why)
    end
    receipts[n] = found and {answer[2], answer[3], "0"} or {tasks[n].id, answer, "1"}
  end
  return receipts
end

local function read_all(tasks)
  local read, kinds, seen = {}, {}, {}
  for n, task in ipairs(tasks) do
    read[n] = read_task.read(task.kind, task.given, task.what)
    if not seen[task.kind] then
      seen[task.kind] = true
      kinds[#kinds + 1] = task.kind
    end
  end
  return read, kinds
end

-- store_tasks enqueues all tasks or none.
--
--   tasks  kind, given and what of each
--
-- Returns for each {id, deadline_at, new}
local function store_tasks(root, tasks)
  local read, kinds = read_all(tasks)
  local tx = read_root(begin(root), kinds)
  tx.strict = true
  local receipts = unit(tx, enqueue, read)
  if tx.reply.failed[1] then
    error(tx.reply.failed[1], 0)
  end
  return receipts
end
