-- A new task whose fields are all valid.
--
-- @use queue/queue: count, place
-- @use store/events: emit
-- @use store/figures: tally
-- @use store/index
-- @use store/later
-- @use store/messages: alarm
-- @use store/record: format, names, record
-- @use store/state: final, nearest
-- @use store/tx: memo
-- @use task/identity: idempotency, incarnation

-- read_defaults reads defaults as the root has them (check/fields.lua).
local function read_defaults(text)
  local by_field = {}
  for name, value in string.gmatch(text, "([%w_]+)=([^\n]*)") do
    by_field[name] = value
  end
  if by_field.timeout then
    by_field.timeout_ms, by_field.timeout = by_field.timeout, nil
  end
  return by_field
end

-- defaults returns the defaults of a kind (call/define.lua), by field: what its tasks get where their producer gives
-- nothing.
local function defaults(tx, kind)
  local known = tx.root.defaults[kind]
  if known == nil then
    known = redis.call("HGET", tx.key.root, "kind:" .. kind) or ""
  end
  if type(known) == "string" then
    known = read_defaults(known)
    tx.root.defaults[kind] = known
  end
  return known
end

-- fill_backoff notes that a task has retries and no back-off of its own or of its kind: draft gives it the usual one, so that it is
-- not retried within milliseconds. A back-off of 0 or "none" retries at once.
--
-- The definition of a flow decides about its nodes: they have no back-off unless it or the kind gives one.
local function fill_backoff(f)
  if f.max_retries and tonumber(f.max_retries) > 0 and not f.backoff_ms and not f.node then
    f.usual_backoff = tonumber(f.backoff_max_ms) or 600000
  end
end

-- set_backoff sets the usual back-off: 1 s, doubled by each retry up to 10 minutes, less up to 20 percent. The pauses before the
-- first ten retries take at most half of the time that the task has, so that the attempts have the other half. A task with a million
-- retries, which means until its time is up, would have no pauses otherwise. The record stores it: a task keeps the back-off that it was
-- made with. Tasks of one shape can have other owners, and so another time: it is computed for each draft.
--
--   time  the ms from when the task can start until its time is up; nil: it has no limit
local function set_backoff(f, time)
  local longest = f.usual_backoff
  if time then
    longest = math.max(1, math.min(longest, math.floor(time / (2 * math.min(f.max_retries, 10)))))
  end
  f.backoff, f.jitter = f.backoff or "exponential", f.jitter or "20"
  f.backoff_ms, f.backoff_max_ms = string.format("%d", math.min(longest, 1000)), string.format("%d", longest)
end

-- head returns two strings: the first line with the lines after it, and the empty line with the texts.
local function head(tx, f, d, of)
  local lines, texts = "", ""
  local first = f.kind .. " " .. f.queue .. " " .. tx.now .. " " .. (d.deadline_at or "-") .. " " .. (d["until"] or "-") .. "\n"
  if d.until_of then
    lines = "until_of=" .. d.until_of .. "\n"
  end
  if of then
    lines = lines .. "of_number=" .. incarnation.number(of) .. "\n"
  end
  local given = {}
  for name in pairs(f) do
    if names.of_spec[name] then
      given[#given + 1] = name
    end
  end
  table.sort(given)
  for _, name in ipairs(given) do
    if names.of_spec[name] == ":" then
      lines, texts = lines .. name .. ":" .. #f[name] .. "\n", texts .. f[name]
    else
      lines = lines .. name .. "=" .. f[name] .. "\n"
    end
  end
  return first .. lines, "\n" .. texts
end

-- source says who made a task.
local function source(f, plan)
  return f.hook_of and "hook" or f.retry_of and "retry" or plan.of and "agent" or "client"
end

-- set_instants gives a new task the instants of its state, if it has any: when it can start, the limit of its line, and its
-- warning.
local function set_instants(tx, f, plan, d)
  local last, start = final(d), plan.start
  if start and (start > tx.at or f.role) then
    d.available_at = string.format("%d", math.max(start, tx.at)) -- a timer cannot fire before it is made
    alarm.note(tx, tonumber(d.available_at))
  end
  if f.queue_timeout_ms and not f.role then
    local limit = (tonumber(d.available_at) or tx.at) + f.queue_timeout_ms
    d.limit_at = not (last and last <= limit) and string.format("%d", limit)
  end
  if f.warn_percent and last then
    d.warn_at = string.format("%d", tx.at + math.floor((last - tx.at) * f.warn_percent / 100))
  end
  local limit = nearest(d)
  if limit then
    d.limit = string.format("%d", limit)
    alarm.note(tx, limit)
  end
  if limit or d.available_at then
    d.status, d.rich = "PENDING", {"available_at", "limit_at", "warn_at"}
    d.state = format(d, "")
  end
end

-- draft makes the texts of a new task without its id and payload: tasks of one shape and owner share a draft.
--
--   f     the fields of the task, with defaults applied
--   plan  deadline  the task's own deadline, a number, or nil
--         start     when it can start, a number; nil: at once
--         bound     when its owner's time is up, a text, if that is not later than its deadline
--         until_of  the id of the task whose time that is
--         of        the task that it is a child or hook of, or nil
local function draft(tx, f, plan)
  local d = {fields = f, deadline_at = plan.deadline and string.format("%d", plan.deadline), ["until"] = plan.bound,
    until_of = plan.bound and plan.until_of, available_at = false, limit_at = false, warn_at = false, limit = false, state = false,
    lines = false, texts = false, enqueued = false}
  if plan.deadline then
    alarm.note(tx, plan.deadline)
  end
  set_instants(tx, f, plan, d)
  if f.usual_backoff then
    local last = final(d)
    set_backoff(f, last and last - (tonumber(d.available_at) or tx.at))
  end
  d.lines, d.texts = head(tx, f, d, plan.of)
  d.enqueued = " enqueued " .. source(f, plan) .. (d.available_at and " later" or " now")
  return d
end

local function spec(tx, id, payload, d)
  local lines, least = d.lines, (tx.last or tx.root).number
  if least > tx.at then -- the clock was set back (task/identity.lua)
    lines = lines .. "number=" .. string.format("%d", least) .. "\n"
  end
  if #payload <= record.inline then
    return lines .. d.texts .. payload
  end
  later.before(tx, "SET", tx.key.payload .. id, payload)
  memo(tx, "payloads")[id] = payload
  return lines .. "payload_bytes=" .. #payload .. "\n" .. d.texts
end

-- create makes a new task, all of whose fields are valid. The task gets in line, or on the clock of delayed tasks.
-- A promise gets in neither, since no worker runs it.
local function create(tx, id, payload, d)
  local f = d.fields
  record.add(tx, id, spec(tx, id, payload, d), d.state)
  if d.deadline_at then
    index.add_new(tx, tx.key.deadlines, d.deadline_at, id)
  end
  if d.limit then
    index.add_new(tx, tx.key.limits, d.limit, id)
  end
  if d.available_at then
    index.add_new(tx, tx.key.delayed, d.available_at, id)
  elseif not f.role then
    place(tx, id, f.queue, f.priority, "new")
  end
  if f.idempotency_key then
    idempotency.keep(tx, f.idempotency_key, id, idempotency.digest(f.kind, payload), tonumber(f.idempotency_window_ms))
  end
  count.add(tx, f.queue, "enqueued", 1)
  tally.add(tx, f, d.enqueued)
  if tx.root.level == "all" then
    emit(tx, "all", "task_enqueued", {id = id, kind = f.kind, queue = f.queue, created_at = tx.now, node = f.node})
  end
end
