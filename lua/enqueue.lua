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
--            on_timeout         of an attempt: fail (default), or retry
--            warn_percent       of its time, after which one event deadline_near is told
--            cancel_grace_ms    how long its handler may go on once it is cancelled
--            max_retries        attempts after the first
--            backoff            constant (default) or exponential
--            backoff_ms, backoff_max_ms, jitter   between attempts; jitter is in percent
--            retry_expression   asked by its worker; decides instead of the class
--            hook_success, hook_failure, hook_timeout, hook_cancel
--                               "kind" or "kind queue" of a task to enqueue at such an end
--            role               promise: no worker runs it, resolve ends it;
--                               timer: a promise that completes at available_at
--            retention_ms       how long its record is kept after its end
--            idempotency_key    the first task with this key is the task
--            idempotency_scope  how long: started, finished, window; absent: a day past the end
--            idempotency_window_ms   of scope window, from now
--            retry_of           id of the ended task that somebody runs again by this one
--          An id with a dot is a child: its owner's id, a dot, a counter or name.
--          What is absent and not "none" comes from the defaults of the kind.
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
-- @include sound
-- @include defaults
-- @include overdue
-- @include owner
-- @include live
-- @include create
-- @include alarm
-- @include refuse
-- @include flush
-- @include complete

local k, at = keys(KEYS[1]), now()
local partition = string.match(KEYS[1], "{(%d+)}$")
local greatest = 9007199254740992 -- 2^53: what a score holds exactly
local none = false -- some task says that it wants none of something

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
-- 16 of them. A hook's id is made by the task that it belongs to.
local function identified(id)
  if not id or #id > 512 or string.match(id, "^(%d+)%-%w[%w._!-]*$") ~= partition then
    return false
  end
  if string.find(id, "!", 1, true) and not owner(id) then
    return false
  end
  return not string.find(id, ".", 1, true) or
    not string.find(id, "%.[^%w]") and string.sub(id, -1) ~= "." and
    select(2, string.gsub(id, "%.", "")) <= 16
end

-- unfit names a pair of fields that do not go together, and why.
local function unfit(task)
  if task.timeout_ms and task.deadline_at then
    return "deadline_at", "give a timeout or a deadline, not both"
  elseif task.delay_ms and task.available_at then
    return "available_at", "give a delay or a start time, not both"
  elseif task.idempotency_key and owner(task.id) then
    return "idempotency_key", "a child's id is its idempotency key"
  elseif task.idempotency_scope and not task.idempotency_key then
    return "idempotency_scope", "there is no idempotency_key whose scope it could be"
  elseif (task.idempotency_scope == "window") ~= (task.idempotency_window_ms ~= nil) then
    return "idempotency_window_ms", "goes with the idempotency_scope window, and that with it"
  end
  if (task.on_timeout == "retry" or task.retry_expression) and
    tonumber(task.max_retries or defaults(k, task.kind).max_retries or 0) < 1 then
    if task.retry_expression then
      return "retry_expression", "needs max_retries of at least 1"
    end
    return "on_timeout", "retry needs max_retries of at least 1"
  end
  if task.role then
    for _, name in ipairs({"queue_timeout_ms", "attempt_timeout_ms", "cancel_grace_ms", "max_retries", "backoff",
      "backoff_ms", "backoff_max_ms", "jitter", "on_timeout", "retry_expression", "priority"}) do
      if task[name] and task[name] ~= "none" then
        return name, "means nothing for a " .. task.role .. ", which no worker runs"
      end
    end
    local start = task.delay_ms or task.available_at
    if task.role == "timer" and not start then
      return "available_at", "a timer needs the time at which it completes, or a delay"
    elseif task.role == "promise" and start then
      return "available_at", "means nothing for a promise: it may be settled at any time"
    end
  end
end

-- invalid names the field that is wrong, and why.
local function invalid(task)
  local field, why = sound(task)
  if field then
    return field, why
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
  return unfit(task)
end

-- fill puts the defaults of the kind where the producer said nothing.
local function fill(task)
  local given = defaults(k, task.kind)
  if next(given) then
    for name, value in pairs(given) do
      if task[name] == nil and not (task.role and name ~= "timeout_ms" and name ~= "retention_ms") then
        task[name] = value
      end
    end
    if task.deadline_at then
      task.timeout_ms = nil
    end
  end
  if none then
    for _, name in ipairs({"timeout_ms", "queue_timeout_ms", "attempt_timeout_ms", "cancel_grace_ms", "retention_ms",
      "backoff_ms", "backoff_max_ms"}) do
      if task[name] == "none" then
        task[name] = nil
      end
    end
  end
  if (task.on_timeout or task.retry_expression) and tonumber(task.max_retries or 0) == 0 then
    task.on_timeout, task.retry_expression = nil, nil
  end
end

-- untimely checks what only the clock can tell, for a task that is not known.
local function untimely(task, deadline, start)
  if deadline and deadline > greatest then
    return "timeout_ms", "ends after 2^53 ms"
  elseif start and start > greatest then
    return "delay_ms", "ends after 2^53 ms"
  elseif deadline and deadline < at then
    return "deadline_at", "is in the past; it is " .. string.format("%d", at) .. " now"
  elseif deadline and start and start > deadline then
    return "available_at", "the task may not start before its deadline: start earlier, or give it more time"
  end
  local window = tonumber(task.idempotency_window_ms)
  if window and deadline and at + window < deadline then
    return "idempotency_window_ms", "ends before the deadline, so that a second task could start beside the first: make it longer"
  end
end

-- held is the id that an idempotency key stands for, and the digest of its content;
-- nil if it is free. A key whose time is up is free though no reaper has seen it.
local function held(key)
  local first = redis.call("HGET", k.idem, key)
  if not first then
    return nil
  end
  local id, digest = string.match(first, "^(%S+) (%x+)$")
  local forgotten = tonumber(redis.call("ZSCORE", k.forget, key))
  if forgotten and forgotten <= at then
    redis.call("HDEL", k.idem, key)
    redis.call("ZREM", k.forget, key)
    return nil
  end
  local task = overdue(k, id, at)
  if task.status and not live(task) and redis.call("HGET", k.idem, key) ~= first then
    return nil -- it was the task's until its end, which is now
  end
  return id, digest, task
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
  if not task.idempotency_key then
    return nil
  end
  local id, digest, first = held(task.idempotency_key)
  if not id then
    return nil
  elseif digest ~= redis.sha1hex(task.kind .. "\n" .. (task.payload or "")) then
    return {"CONFLICT", id}
  end
  return {id == task.id and "OK" or "KNOWN", id, first.deadline_at or ""}
end

-- adopt enters a child with its owner.
local function adopt(task, parent)
  redis.call("RPUSH", k.children .. parent.id, task.id) -- first: it may be of the wrong type
  redis.call("HINCRBY", k.task .. parent.id, "children", 1)
end

-- keep writes down what an idempotency key stands for, and for how long if that does
-- not depend on the task.
local function keep(task, window)
  redis.call("HSET", k.idem, task.idempotency_key, task.id .. " " .. redis.sha1hex(task.kind .. "\n" .. (task.payload or "")))
  if window then
    redis.call("ZADD", k.forget, string.format("%d", at + window), task.idempotency_key)
    alarm(k, at + window)
  end
end

local function take(task, perhaps)
  local field, why = invalid(task)
  if field then
    return {"INVALID", field, why}
  end
  local answer = known(task, perhaps)
  if answer then
    return answer
  end
  local warns = task.warn_percent
  fill(task)
  local deadline = task.timeout_ms and at + task.timeout_ms or tonumber(task.deadline_at)
  local start = task.delay_ms and at + task.delay_ms or tonumber(task.available_at)
  field, why = untimely(task, deadline, start)
  if field then
    return {"INVALID", field, why}
  end
  local parent, bound = owner(task.id), nil
  if parent then
    parent = overdue(k, parent, at)
    if not live(parent) then
      if parent.status then
        refuse(k, parent, at, "enqueue", "", "")
      end
      return {"OWNER", parent.id, parent.status or ""}
    end
    -- Of equal instants the owner's counts, whoever is looked at first.
    bound = parent["until"] or parent.deadline_at
    bound = not (deadline and bound and deadline < tonumber(bound)) and bound or nil
  end
  local final = tonumber(bound) or deadline
  if warns and not final then
    return {"INVALID", "warn_percent", "there is no deadline to warn of: give a timeout"}
  end

  -- From here on it is created; every refusal is above.
  local window = tonumber(task.idempotency_window_ms)
  task.timeout_ms, task.delay_ms, task.idempotency_window_ms = nil, nil, nil
  task.deadline_at = deadline and string.format("%d", deadline) or nil
  task.available_at = nil
  if start and (start > at or task.role) then
    task.available_at = string.format("%d", math.max(start, at)) -- a timer cannot fire before it is made
  end
  if parent then
    adopt(task, parent)
    task["until"] = bound
    task.until_of = bound and (parent.until_of or parent.id) or nil
  end
  if task.idempotency_key then
    keep(task, window)
  end
  create(k, task, at)
  return {"OK", task.id, task.deadline_at or ""}
end

local tasks, named_fields, i = {}, {}, 1
while i <= #ARGV do
  local n = tonumber(ARGV[i])
  if not n or n < 1 or n > 100 or n ~= math.floor(n) then
    error("enqueue: " .. ARGV[i] .. " is no count of fields", 0)
  end
  local task, last = {queue = "default"}, i + 2 * n
  for j = i + 1, last, 2 do
    task[ARGV[j]] = ARGV[j + 1]
    named_fields[ARGV[j]] = true
    none = none or ARGV[j + 1] == "none"
  end
  tasks[#tasks + 1] = task
  i = last + 1
end

-- A key of the wrong type must be met before the first write, not after it.
local kinds, asked = {}, {}
for _, task in ipairs(tasks) do
  local field = "kind:" .. (task.kind or "")
  if not asked[field] then
    asked[field] = true
    kinds[#kinds + 1] = field
  end
end
root(k, kinds)
complete(k.failed)
for _, field in ipairs(kinds) do
  for name in pairs(defaults(k, string.sub(field, 6))) do
    named_fields[name] = true
  end
end
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
local function whole(field, command, key)
  if named_fields[field] then
    redis.call(command, key)
  end
end
whole("timeout_ms", "ZCARD", k.deadlines)
whole("deadline_at", "ZCARD", k.deadlines)
whole("delay_ms", "ZCARD", k.delayed)
whole("available_at", "ZCARD", k.delayed)
whole("queue_timeout_ms", "ZCARD", k.limits)
whole("warn_percent", "ZCARD", k.limits)
whole("idempotency_key", "HLEN", k.idem)
whole("idempotency_key", "ZCARD", k.forget)

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
  local ok, answer = pcall(take, task, perhaps)
  answers[n] = ok and answer or {"BROKEN", task.id or "", type(answer) == "table" and answer.err or tostring(answer)}
end
complete(flush(k, at))
return answers
