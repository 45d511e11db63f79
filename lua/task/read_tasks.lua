-- read_tasks reads the tasks of a call, from argument `first` to the last.
--
-- Tasks that differ only in id and payload share a shape, which is checked once:
--
--   the number of shapes; for each, the number of its fields, then name and value of each
--   for each task, the number of its shape from 1 on, its id, and its payload
--
-- Returns the tasks, each {shape, id, payload}, and the kinds of their shapes. It raises if the arguments are not such
-- a list. It reads nothing from Redis.
--
-- @use check/number

local function read_shape(argv, i)
  local n = number(argv, i, 2, "fields")
  local fields = {queue = "default"}
  local shape, given = {fields = fields}, {}
  for j = i + 1, i + 2 * n, 2 do
    local name = argv[j]
    if given[name] then
      shape.field, shape.why = name, "is given twice"
    elseif name == "id" or name == "payload" then
      shape.field, shape.why = name, "belongs beside its task, not among the fields"
    end
    given[name], fields[name] = true, argv[j + 1]
    shape.none = shape.none or argv[j + 1] == "none"
  end
  return shape, i + 2 * n + 1
end

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
