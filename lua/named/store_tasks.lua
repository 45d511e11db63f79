-- store_tasks enqueues all tasks or none.
--
--   tasks  kind, given and what of each (named/read_task.lua)
--
-- Returns for each {id, deadline_at, new}
--
-- @use store/begin
-- @use store/read_root
-- @use unit/unit
-- @use named/place_tasks
-- @use named/read_task
-- @use named/refusal
-- @use named/reject
-- @use task/enqueue_all

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

local function store_tasks(root, tasks)
  local read, kinds = read_all(tasks)
  local tx = read_root(begin(root), kinds)
  tx.strict = true
  local receipts = unit(tx, enqueue, read)
  if tx.failed[1] then
    error(tx.failed[1], 0)
  end
  return receipts
end
