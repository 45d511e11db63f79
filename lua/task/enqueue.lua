-- Tasks of a caller, made or found.
--
-- @use check/values: number
-- @use store/later
-- @use store/record
-- @use task/create
-- @use task/plan: look_for_existing, plan
-- @use task/removal: remove_record

local function read_shape(argv, i)
  local last = i + 2 * number(argv, i, 2, "fields")
  local fields, field, why, none = {}, nil, nil, false
  for j = i + 1, last, 2 do
    local name, value = argv[j], argv[j + 1]
    if fields[name] then
      field, why = name, "is given twice"
    elseif name == "id" or name == "payload" then
      field, why = name, "belongs beside its task, not among the fields"
    end
    fields[name] = value
    none = none or value == "none"
  end
  fields.queue = fields.queue or "default"
  return {fields = fields, field = field, why = why, none = none, checked = false, bad_name = false, bad_field = false, warns = false, default_timeout = false}, last + 1
end

-- read_tasks reads the tasks of a call, from argument `first` to the last.
--
-- Tasks that differ only in id and payload share a shape, which is checked once:
--
--   the number of shapes; for each, the number of its fields, then name and value of each
--   for each task, the number of its shape from 1 on, its id, and its payload
--
-- Returns the tasks, each {shape, id, payload}, and the kinds of their shapes. It raises if the arguments are not such
-- a list. It reads nothing from Redis.
local function read_tasks(argv, first)
  local shapes, kinds, seen, tasks = {}, {}, {}, {}
  if first > #argv then -- no task
    return tasks, kinds
  end
  local i = first + 1
  for n = 1, number(argv, first, 1, "shapes") do
    shapes[n], i = read_shape(argv, i)
    local kind = shapes[n].fields.kind
    if kind and not seen[kind] then
      seen[kind] = true
      kinds[#kinds + 1] = kind
    end
  end
  local words = #argv - i + 1
  if words % 3 ~= 0 or words > 1500 or words == 0 and shapes[1] then
    error("argument " .. i .. " and those after it must be shape, id and payload of up to 500 tasks", 0)
  end
  for j = i, #argv, 3 do
    local shape = shapes[tonumber(argv[j])]
    if not shape then
      error("argument " .. j .. " must be the number of a shape, 1 to " .. #shapes, 0)
    end
    tasks[#tasks + 1] = {shape = shape, id = argv[j + 1], payload = argv[j + 2]}
  end
  return tasks, kinds
end

-- adopt makes a task that plan has accepted, and adds it to the children of its owner. It first removes what an earlier
-- owner has left under its id (task/identity.lua).
local function adopt(tx, task, d, parent)
  if parent then
    later.push(tx, tx.key.children .. parent.id, task.id)
    record.set(tx, parent, "children", string.format("%d", (parent.children or 0) + 1))
  end
  if task.replaces then
    remove_record(tx, task.replaces)
  end
  create(tx, task.id, task.payload, d)
end

-- enqueue_all creates tasks, or finds those that exist already.
--
-- Returns an answer for each (call/enqueue.lua); of a task that was found, {"OK" or "KNOWN", id, deadline_at}
local function enqueue_all(tx, tasks)
  local answers = {}
  look_for_existing(tx, tasks)
  for n, task in ipairs(tasks) do
    local answer, d, parent = plan(tx, task)
    if not answer then
      adopt(tx, task, d, parent)
      answer = d.deadline_at or ""
    end
    answers[n] = answer
  end
  return answers
end
