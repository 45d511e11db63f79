-- record reads and writes the records of tasks: the spec, which never changes, and the state.
--
-- A unit of work reads each task once, decides on its table, and writes what changed together. Fields of the first
-- line are changed by assignment and touch; all other fields by set.
--
-- @use store/format
-- @use store/later
-- @use store/owner
-- @use store/parse

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
  local why = tx.poison[id] or foreign and in_the_way(tx, id, spec, state) or not spec and state and "it has no spec"
  local task
  if not why and spec then
    task, why = parse(id, spec, state)
  end
  if task then
    task.owner = owner(id) or false
  end
  tx.tasks[id] = why and {id = id, broken = why} or task or {id = id, status = false}
end

local function load_some(tx, ids)
  local names, absent = {}, {}
  for i, id in ipairs(ids) do
    names[2 * i - 1], names[2 * i] = tx.key.spec .. id, tx.key.state .. id
  end
  local texts = redis.call("MGET", unpack(names))
  for i = 1, #names do
    absent[#absent + 1] = not texts[i] and names[i] or nil
  end
  local foreign = absent[1] and redis.call("EXISTS", unpack(absent)) > 0
  for i, id in ipairs(ids) do
    read(tx, id, texts[2 * i - 1], texts[2 * i], foreign)
  end
end

-- load reads tasks that have not been read yet, with as few commands as possible.
function record.load(tx, ids)
  local wanted, n = {}, 0
  for _, id in ipairs(ids) do
    if #id > 1024 then -- no id is that long, and reading such a key would be costly
      tx.tasks[id] = {id = id, status = false}
    elseif tx.tasks[id] == nil then
      tx.tasks[id] = false
      n = n + 1
      wanted[n] = id
      if n == 1000 then
        load_some(tx, wanted)
        wanted, n = {}, 0
      end
    end
  end
  if n > 0 then
    load_some(tx, wanted)
  end
end

-- get returns a task. Its status is false if no task has this id. get returns nil and why if the record cannot be read.
function record.get(tx, id)
  local task = tx.tasks[id]
  if not task then
    record.load(tx, {id})
    task = tx.tasks[id]
  elseif type(task) == "number" then -- a new task of this unit
    local n, texts = task, tx.texts
    task = parse(id, texts[n], texts[n + 1] == tx.key.state .. id and texts[n + 2] or nil)
    task.owner = owner(id) or false
    tx.tasks[id] = task
  end
  if task.broken then
    return nil, task.broken
  end
  return task
end

-- touch marks the state of a task to be written.
function record.touch(tx, task)
  if not task.changed then
    task.changed, tx.changed[#tx.changed + 1] = true, task
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
  local n = #tx.texts
  tx.texts[n + 1], tx.texts[n + 2] = tx.key.spec .. id, spec
  if state then
    tx.texts[n + 3], tx.texts[n + 4] = tx.key.state .. id, state
  end
  tx.tasks[id] = n + 2 -- the index of its spec in texts; get parses it
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
  local texts, n, last = tx.texts, #tx.texts
  for _, task in ipairs(tx.changed) do
    texts[n + 1], texts[n + 2] = tx.key.state .. task.id,
      last and same_state(last, task) and texts[n] or format(task, task.body_bytes and "" or body(tx, task))
    n, last = n + 2, task
  end
end

-- write writes the records. From here on the transition has happened.
function record.write(tx)
  for i = 1, #tx.texts, 2000 do
    redis.call("MSET", unpack(tx.texts, i, math.min(i + 1999, #tx.texts)))
  end
end
