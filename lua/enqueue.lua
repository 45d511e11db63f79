-- enqueue: producers hand over tasks. Each is created, or found if it is known.
--
-- KEYS[1]  root of the partition, "curfew:{0}"; all other keys are derived from it
-- ARGV     for each task: how many fields it has, then name and value of each.
--          id and kind are required; the others are
--            queue              "default" if absent
--            payload, headers   opaque
--            priority           0 to 3, 3 goes first
--            timeout_ms | deadline_at        from now, or ms since 1970; absent: no deadline
--            delay_ms | available_at         not before; absent: at once
--            queue_timeout_ms   how long it may stand in line
--            attempt_timeout_ms how long one attempt may take
--            max_retries        attempts after the first
--            retention_ms       how long its record is kept after its end
--            idempotency_key    the first task with this key is the task
--          An id with a dot is a child: its owner's id, a dot, a counter or name.
--
-- Returns  for each task one of
--   {"OK", id, deadline_at}      created; also when this id had created it before
--   {"KNOWN", id, deadline_at}   its idempotency key names this task
--   {"CONFLICT", id}             its idempotency key names a task of other content
--   {"TAKEN", id}                the id is that of another task: make a new one
--   {"OWNER", id, status}        its owner has ended, or is not there (status "")
--   {"INVALID", field, why}      nothing was stored
--   {"BROKEN", id, why}          a record in its way cannot be worked with
-- Flags
--
-- @include keys
-- @include now
-- @include root
-- @include overdue
-- @include owner
-- @include live
-- @include later
-- @include count
-- @include stamp
-- @include alarm
-- @include ready
-- @include emit
-- @include flush
-- @include complete

local k, at = keys(KEYS[1]), now()

local numbers = {
  priority = 0, timeout_ms = 1, deadline_at = 1, delay_ms = 0, available_at = 0,
  queue_timeout_ms = 1, attempt_timeout_ms = 1, max_retries = 0, retention_ms = 0,
}
local words = {id = true, kind = true, queue = true, payload = true, headers = true, idempotency_key = true}
local partition = string.match(KEYS[1], "{(%d+)}$")
local greatest = 9007199254740992 -- 2^53: what a score holds exactly

-- named tells whether a name is sound; a list names few kinds and queues many times.
local names = {}
local function named(name, pattern)
  local known = names[pattern .. (name or "")]
  if known == nil then
    known = name ~= nil and #name <= 128 and string.find(name, pattern) ~= nil
    names[pattern .. (name or "")] = known
  end
  return known
end

-- identified tells whether an id is one of this partition: a root's letters and
-- digits, then its children's names, which begin with a letter or digit too; at most
-- 16 of them.
local function identified(id)
  if not id or #id > 512 or string.match(id, "^(%d+)%-%w[%w._-]*$") ~= partition then
    return false
  end
  return not string.find(id, ".", 1, true) or
    not string.find(id, "%.[^%w]") and string.sub(id, -1) ~= "." and
    select(2, string.gsub(id, "%.", "")) <= 16
end

-- invalid names the field that is wrong, and why.
local function invalid(task)
  for name, value in pairs(task) do
    local least = numbers[name]
    if least then
      local n = tonumber(value)
      if not n or not string.find(value, "^%d+$") or n < least or n > greatest then
        return name, "must be a whole number from " .. least .. " to 2^53"
      end
    elseif not words[name] then
      return name, "is not a field of a task"
    end
  end
  if not identified(task.id) then
    return "id", "must be the partition, " .. partition .. ", a dash, letters and digits"
  end
  if not named(task.kind, "^[%w][%w._:/-]*$") then
    return "kind", "must be 1 to 128 of A-Z a-z 0-9 . _ - : / and begin with a letter or digit"
  end
  if not named(task.queue, "^[%w][%w._-]*$") then
    return "queue", "must be 1 to 128 of A-Z a-z 0-9 . _ - and begin with a letter or digit"
  end
  if tonumber(task.priority or 0) > 3 then
    return "priority", "must be 0, 1, 2 or 3"
  end
  if task.timeout_ms and task.deadline_at then
    return "deadline_at", "give a timeout or a deadline, not both"
  end
  if task.idempotency_key and owner(task.id) then
    return "idempotency_key", "a child's id is its idempotency key"
  end
  if task.delay_ms and task.available_at then
    return "available_at", "give a delay or a start time, not both"
  end
end

-- untimely checks what only the clock can tell, for a task that is not known.
local function untimely(task, deadline, start)
  if deadline and deadline > greatest then
    return "timeout_ms", "ends after 2^53 ms"
  end
  if start and start > greatest then
    return "delay_ms", "ends after 2^53 ms"
  end
  if deadline and deadline < at then
    return "deadline_at", "is in the past; it is " .. string.format("%d", at) .. " now"
  end
  if deadline and start and start > deadline then
    return "available_at", "the task may not start before its deadline: start earlier, or give it more time"
  end
end

-- known answers for a task that is there already, and returns nil for a new one.
-- perhaps: one of the ids of this call is known.
local function known(task, perhaps)
  if perhaps and redis.call("EXISTS", k.task .. task.id) == 1 then
    local old = redis.call("HMGET", k.task .. task.id, "kind", "queue", "deadline_at")
    local payload = redis.call("GET", k.payload .. task.id) or ""
    if old[1] == task.kind and old[2] == task.queue and payload == (task.payload or "") then
      return {"OK", task.id, old[3] or ""}
    end
    return {"TAKEN", task.id}
  end
  local key = task.idempotency_key
  local first = key and redis.call("HGET", k.idem, key)
  if not first then
    return nil
  end
  local id, digest = string.match(first, "^(%S+) (%x+)$")
  if digest ~= redis.sha1hex(task.kind .. "\n" .. (task.payload or "")) then
    return {"CONFLICT", id}
  end
  return {id == task.id and "OK" or "KNOWN", id, overdue(k, id, at).deadline_at or ""}
end

-- adopt enters a child with its owner, and copies what bounds it from there. Of
-- equal instants the owner's counts, whoever is looked at first.
local function adopt(task, parent)
  redis.call("RPUSH", k.children .. parent.id, task.id) -- first: it may be of the wrong type
  redis.call("HINCRBY", k.task .. parent.id, "children", 1)
  local bound = parent["until"] or parent.deadline_at
  if bound and not (task.deadline_at and tonumber(task.deadline_at) < tonumber(bound)) then
    task["until"] = bound
    task.until_of = parent.until_of or parent.id
  end
end

local function create(task, perhaps)
  local field, why = invalid(task)
  if field then
    return {"INVALID", field, why}
  end
  local answer = known(task, perhaps)
  if answer then
    return answer
  end
  local deadline = task.timeout_ms and at + task.timeout_ms or tonumber(task.deadline_at)
  local start = task.delay_ms and at + task.delay_ms or tonumber(task.available_at)
  field, why = untimely(task, deadline, start)
  if field then
    return {"INVALID", field, why}
  end
  local parent = owner(task.id)
  if parent then
    parent = overdue(k, parent, at)
    if not live(parent) then
      return {"OWNER", parent.id, parent.status or ""}
    end
  end

  -- From here on it is created; every refusal is above.
  task.timeout_ms, task.delay_ms = nil, nil
  task.deadline_at = deadline and string.format("%d", deadline) or nil
  task.available_at = start and start > at and string.format("%d", start) or nil
  if parent then
    adopt(task, parent)
  end
  local fields, n = {"version", "1", "status", "PENDING", "created_at", stamp(k, at)}, 6
  for name, value in pairs(task) do
    if name ~= "id" and name ~= "payload" then
      fields[n + 1] = name
      fields[n + 2] = value
      n = n + 2
    end
  end
  redis.call("HSET", k.task .. task.id, unpack(fields))
  if task.payload and task.payload ~= "" then
    redis.call("SET", k.payload .. task.id, task.payload)
  end
  if task.idempotency_key then
    redis.call("HSET", k.idem, task.idempotency_key,
      task.id .. " " .. redis.sha1hex(task.kind .. "\n" .. (task.payload or "")))
  end
  if deadline then
    later(k, "ZADD", k.deadlines, task.id, task.deadline_at)
    alarm(k, deadline)
  end
  if task.available_at then
    later(k, "ZADD", k.delayed, task.id, task.available_at)
    alarm(k, start)
  else
    ready(k, task, at)
  end
  count(k, task.queue, "enqueued", 1)
  emit(k, "all", "task_enqueued", task, at)
  return {"OK", task.id, task.deadline_at or ""}
end

local tasks, i = {}, 1
while i <= #ARGV do
  local n = tonumber(ARGV[i])
  if not n or n < 1 or n > 100 or n ~= math.floor(n) then
    error("enqueue: " .. ARGV[i] .. " is no count of fields", 0)
  end
  local task, last = {queue = "default"}, i + 2 * n
  for j = i + 1, last, 2 do
    task[ARGV[j]] = ARGV[j + 1]
  end
  tasks[#tasks + 1] = task
  i = last + 1
end

-- A key of the wrong type must be met before the first write, not after it.
root(k)
complete(k.failed)
if k.level == "all" then
  redis.call("XLEN", k.events)
end
for _, task in ipairs(tasks) do
  local queue = task.queue
  if not k.tokens[queue] then
    redis.call("ZCARD", k.ready .. queue)
    redis.call("HLEN", k.queue .. queue)
    k.tokens[queue] = redis.call("LLEN", k.wake .. queue)
    k.listed[queue] = redis.call("SISMEMBER", k.queues, queue) == 1
  end
end
local function sound(field, command, key)
  for _, task in ipairs(tasks) do
    if task[field] then
      redis.call(command, key)
      return
    end
  end
end
sound("timeout_ms", "ZCARD", k.deadlines)
sound("deadline_at", "ZCARD", k.deadlines)
sound("delay_ms", "ZCARD", k.delayed)
sound("available_at", "ZCARD", k.delayed)
sound("queue_timeout_ms", "ZCARD", k.limits)
sound("idempotency_key", "HLEN", k.idem)

-- As a rule none of the ids is known, and one look at all of them says so. The same
-- id twice in a list is found by the second look.
local ids, twice, perhaps = {}, {}, false
for n, task in ipairs(tasks) do
  local id = task.id or ""
  ids[n] = k.task .. id
  perhaps = perhaps or twice[id]
  twice[id] = true
end
perhaps = perhaps or #ids > 0 and redis.call("EXISTS", unpack(ids)) > 0

local answers = {}
for n, task in ipairs(tasks) do
  local ok, answer = pcall(create, task, perhaps)
  answers[n] = ok and answer or {"BROKEN", task.id or "", type(answer) == "table" and answer.err or tostring(answer)}
end
complete(flush(k, at))
return answers
