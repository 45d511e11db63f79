-- The record of a task: how it is written as text, and how a unit of work reads and writes it.
--
-- @use store/later
-- @use store/state: live, owner
-- @use store/task_fields

-- names are the names of what a record can have beside its first lines, in the order in which they are
-- written. The value of a line cannot contain a newline. A text can hold any bytes: the head has its length, and the
-- text follows the head.
local names = {}

-- Of the spec, which is written once.
names.spec_lines, names.spec_texts = {}, {}

-- Of the state, which is rewritten at each change.
names.state_lines = {"available_at", "limit_at", "warn_at", "ready_at", "attempt_at", "line_at", "passed_on", "children", "watched", "journal", "collects", "waiting", "counted_as",
  "woken", "suspended_by", "requeued_by", "lost_by", "lease_losses", "cancel_at", "grace_at", "cancelled_by", "late_by",
  "progress_at", "code", "reason", "timed_out", "timeout_type", "detected_at", "retry_state", "body_bytes", "held", "held_at", "held_by"}
names.state_texts = {"cancel_reason", "progress", "last_error", "retry_error", "release_reason"}

-- The values of these are whole numbers; a record in which one is not is broken. (progress_at is not listed: only
-- people read it.)
names.numbers = {available_at = true, limit_at = true, warn_at = true, ready_at = true, attempt_at = true, line_at = true,
  passed_on = true, children = true, lease_losses = true, cancel_at = true, grace_at = true, detected_at = true, body_bytes = true, held_at = true}

-- (ipairs does not exist while a library is being loaded.)
names.known, names.of_spec, names.of_state = {}, {}, {}

for i = 1, #task_fields do
  local name, list = task_fields[i][1], task_fields[i].spec == "=" and names.spec_lines or names.spec_texts
  if task_fields[i].spec then
    list[#list + 1], names.of_spec[name], names.known[name] = name, task_fields[i].spec, true
    names.numbers[name] = task_fields[i].least and true
  end
end

local function add(names_of, list, value)
  for i = 1, #list do
    names_of[list[i]] = value
  end
end

add(names.of_state, names.state_lines, "=")
add(names.of_state, names.state_texts, ":")
add(names.known, names.state_lines, true)
add(names.known, names.state_texts, true)

-- head writes what a task has beside its first line: lines, and the texts that follow them. task.rich lists their
-- names, in the order in which the task got them.
local function head(task)
  local lines, texts = "", ""
  for _, name in ipairs(task.rich) do
    local value = task[name]
    if value and names.of_state[name] == "=" then
      lines = lines .. name .. "=" .. value .. "\n"
    elseif value then
      lines, texts = lines .. name .. ":" .. #value .. "\n", texts .. value
    end
  end
  for i = 1, task.unknown and #task.unknown or 0 do
    local name, sign, value = unpack(task.unknown[i])
    if sign == ":" then
      lines, texts = lines .. name .. ":" .. #value .. "\n", texts .. value
    else
      lines = lines .. name .. "=" .. value .. "\n"
    end
  end
  return lines .. "\n" .. texts
end

-- format writes the state of a task as text (parse reads it).
--
--   body  the result or error of an ended task, if it is stored in the state; otherwise ""
local function format(task, body)
  return task.status .. " " .. (task.epoch or "-") .. " " .. (task.worker or "-") .. " " .. (task.started_at or "-") .. " " ..
    (task.retries or "-") .. " " .. (task.completed_at or "-") .. " " .. (task.call or "-") .. "\n" ..
    (task.rich and head(task) or "\n") .. body
end

local ended = {COMPLETED = true, FAILED = true, CANCELLED = true}
local alive = {PENDING = true, RUNNING = true, WAITING = true}

-- read_head reads the lines of a text from a position on, and the texts after them. It returns the position
-- after the texts, or nil if they cannot be read. found.names gets the known names. Other names, which a newer version
-- wrote, are kept in found, each as {name, sign, value}.
local function read_head(task, text, from, found)
  local stop = string.find(text, "\n\n", from, true)
  local body = stop and stop + 2
  for name, sign, value in string.gmatch(stop and string.sub(text, from, stop) or "", "([%w_]+)([=:])([^\n]*)\n") do
    if sign == ":" then
      local length = string.find(value, "^%d+$") and tonumber(value)
      if not length or body + length - 1 > #text then
        return nil
      end
      value = string.sub(text, body, body + length - 1)
      body = body + length
    elseif names.numbers[name] and not string.find(value, "^%d+$") then
      return nil
    end
    if names.known[name] then
      task[name] = value
      found.names[#found.names + 1] = name
    else
      found[#found + 1] = {name, sign, value}
    end
  end
  return body
end

-- parse reads the two texts of a task. All values are strings. A value that is absent is false or nil.
--
--   spec   kind queue created_at deadline_at until        state  status epoch worker started_at retries completed_at call
--          name=value, or name:length of a text                  the same
--          (an empty line)                                       (an empty line)
--          the texts, then the payload                           the texts, then the result or error
--
-- "-" means an absent word. A task without a state is PENDING.
--
-- Returns the task, or nil and why the texts cannot be read
local function parse(id, spec, state)
  local kind, queue, created, deadline, bound, place = string.match(spec, "^(%S+) (%S+) (%d+) ([%d-]+) ([%d-]+)\n()")
  if not kind then
    return nil, "its spec cannot be read"
  end
  local task = {id = id, spec = spec, payload_from = false, kind = kind, queue = queue, created_at = created,
    deadline_at = deadline ~= "-" and deadline, ["until"] = bound ~= "-" and bound, status = "PENDING", epoch = false,
    worker = false, started_at = false, retries = false, completed_at = false, call = false, rich = false, changed = false, unknown = false}
  task.payload_from = string.byte(spec, place) == 10 and place + 1 or read_head(task, spec, place, {names = {}})
  if state then
    local status, epoch, worker, started, retries, completed, call, rest =
      string.match(state, "^(%u+) ([%d-]+) (%S+) ([%d-]+) ([%d-]+) ([%d-]+) (%S+)\n()")
    if not alive[status] and not ended[status] then
      return nil, "its state cannot be read"
    end
    task.status, task.epoch, task.worker = status, epoch ~= "-" and epoch, worker ~= "-" and worker
    task.started_at, task.retries = started ~= "-" and started, retries ~= "-" and retries
    task.completed_at, task.call = completed ~= "-" and completed, call ~= "-" and call
    local body, found = rest + 1, nil
    if string.byte(state, rest) ~= 10 then
      found = {names = {}}
      body = read_head(task, state, rest, found)
      task.rich, task.unknown = found.names, found[1] and found
    end
    if not body then
      return nil, "its state cannot be read"
    elseif ended[status] and not task.body_bytes then
      task[status == "COMPLETED" and "result" or "error"] = string.sub(state, body)
    end
  end
  if not task.payload_from then
    return nil, "its spec cannot be read"
  end
  return task
end

-- same_state reports whether the states of two tasks are the same text, so that the text is made once. Tasks that never
-- ran and end together often have the same state. It returns false if either has its body in a key of its own.
local function same_state(a, b)
  local names, others = a.rich, b.rich
  if a.completed_at ~= b.completed_at or a.status ~= b.status or a.error ~= b.error or a.result ~= b.result or
    a.epoch ~= b.epoch or a.worker ~= b.worker or a.started_at ~= b.started_at or a.retries ~= b.retries or a.call ~= b.call or
    a.unknown or b.unknown or a.body_bytes or b.body_bytes or not names or not others or #names ~= #others then
    return false
  end
  for i, name in ipairs(names) do
    if others[i] ~= name or a[name] ~= b[name] then
      return false
    end
  end
  return true
end

-- record reads and writes the records of tasks: the spec, which never changes, and the state.
--
-- A unit of work reads each task once, decides on its table, and writes what changed together. Fields of the first
-- line are changed by assignment and touch; all other fields by set.
local record = {}

-- inline is the largest size in bytes of a payload, result or error that is stored in the record itself. A larger one
-- has a key of its own, so that a call that needs only the record does not read it.
record.inline = 256

-- in_the_way says why a record cannot be read if a text of it is missing but its key exists. MGET returns nil for a
-- key of another type.
local function in_the_way(tx, id, spec, state)
  if not spec and redis.call("EXISTS", tx.key.spec .. id) == 1 then
    return "WRONGTYPE the key of its spec is of another type"
  elseif not state and redis.call("EXISTS", tx.key.state .. id) == 1 then
    return "WRONGTYPE the key of its state is of another type"
  end
end

local function read(tx, id, spec, state, foreign)
  local why = tx.aside and tx.aside.poison[id] or foreign and in_the_way(tx, id, spec, state)
  local task
  if not why and spec then
    task, why = parse(id, spec, state)
  elseif not why and state then
    why = "it has no spec"
  end
  if task then
    task.owner = owner(id) or false
  end
  tx.records.tasks[id] = task or why and {id = id, broken = why} or {id = id, status = false}
end

-- load_some reads tasks whose specs and states have these names.
local function load_some(tx, ids, names)
  local texts, absent = redis.call("MGET", unpack(names)), {}
  for i = 1, #names do
    if not texts[i] then
      absent[#absent + 1] = names[i]
    end
  end
  local foreign = absent[1] and redis.call("EXISTS", unpack(absent)) > 0
  for i, id in ipairs(ids) do
    read(tx, id, texts[2 * i - 1], texts[2 * i], foreign)
  end
end

-- load reads tasks that have not been read yet, with as few commands as possible.
function record.load(tx, ids)
  local spec, state, tasks = tx.key.spec, tx.key.state, tx.records.tasks
  local wanted, names, n = {}, {}, 0
  for _, id in ipairs(ids) do
    if #id > 1024 then -- no id is that long, and reading such a key would be costly
      tasks[id] = {id = id, status = false}
    elseif tasks[id] == nil then
      tasks[id] = false
      n = n + 1
      wanted[n], names[2 * n - 1], names[2 * n] = id, spec .. id, state .. id
      if n == 1000 then
        load_some(tx, wanted, names)
        wanted, names, n = {}, {}, 0
      end
    end
  end
  if n > 0 then
    load_some(tx, wanted, names)
  end
end

-- get returns a task. Its status is false if no task has this id. get returns nil and why if the record cannot be read.
function record.get(tx, id)
  local tasks = tx.records.tasks
  local task = tasks[id]
  if not task then
    record.load(tx, {id})
    task = tasks[id]
  elseif type(task) == "number" then -- a new task of this unit
    local n, texts = task, tx.records.texts
    task = parse(id, texts[n], texts[n + 1] == tx.key.state .. id and texts[n + 2] or nil)
    task.owner = owner(id) or false
    tasks[id] = task
  end
  if task.broken then
    return nil, task.broken
  end
  return task
end

-- touch marks the state of a task to be written.
function record.touch(tx, task)
  if not task.changed then
    local changed = tx.records.changed
    task.changed, changed[#changed + 1] = true, task
  end
end

-- name records that a task has a field beside its first line. A field that the task had before has the value false.
function record.name(task, name)
  if not task.rich then
    task.rich = {name}
  elseif task[name] == nil then
    task.rich[#task.rich + 1] = name
  end
end

-- set changes a field beside the first line; a value of false or nil removes it.
function record.set(tx, task, name, value)
  if (task[name] or false) ~= (value or false) then
    record.name(task, name)
    task[name] = value or false
    record.touch(tx, task)
  end
end

-- add writes a new task at commit.
function record.add(tx, id, spec, state)
  local texts = tx.records.texts
  local n = #texts
  texts[n + 1], texts[n + 2] = tx.key.spec .. id, spec
  if state then
    texts[n + 3], texts[n + 4] = tx.key.state .. id, state
  end
  tx.records.tasks[id] = n + 2 -- the index of its spec in texts; get parses it
end

-- body returns the text that follows the head of a state. A large one is written to a key of its own.
local function body(tx, task)
  local text = task.result or task.error or ""
  if #text <= record.inline then
    return text
  end
  record.name(task, "body_bytes")
  task.body_bytes = string.format("%d", #text)
  later.before(tx, "SET", tx.key.result .. task.id, text)
  return ""
end

-- prepare makes the texts of the tasks that changed.
function record.prepare(tx)
  local texts, n, last = tx.records.texts, #tx.records.texts
  for _, task in ipairs(tx.records.changed) do
    texts[n + 1], texts[n + 2] = tx.key.state .. task.id,
      last and same_state(last, task) and texts[n] or format(task, task.body_bytes and "" or body(tx, task))
    n, last = n + 2, task
  end
end

-- write writes the records. From here on the transition has happened.
function record.write(tx)
  local texts = tx.records.texts
  for i = 1, #texts, 2000 do
    redis.call("MSET", unpack(texts, i, math.min(i + 1999, #texts)))
  end
end

-- owner_state returns the record of a task's owner if the owner lives. It returns nil if there is no owner, if it has
-- ended, or if its record cannot be read.
local function owner_state(tx, task)
  local state = task.owner and record.get(tx, task.owner)
  if state and live(state) then
    return state
  end
end
