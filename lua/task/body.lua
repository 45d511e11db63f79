-- What is read of a task for a reply.
--
-- @use store/record: names
-- @use store/try: attempt, try
-- @use store/tx: memo

-- payload returns the payload of a task. It returns nil if the payload is lost, or if its key holds something else.
local function payload(tx, task)
  if not task.payload_bytes then
    return string.sub(task.spec, task.payload_from)
  end
  local text = memo(tx, "payloads")[task.id] or attempt("GET", tx.key.payload .. task.id)
  return type(text) == "string" and #text == tonumber(task.payload_bytes) and text or nil
end

-- body returns the result or error of an ended task, or "".
local function body(tx, task)
  if task.body_bytes then
    return try(tx, "GET", tx.key.result .. task.id) or ""
  end
  return task.result or task.error or ""
end

local first = {"status", "kind", "queue", "created_at", "deadline_at", "until", "epoch", "worker", "started_at", "retries",
  "completed_at", "call"}

-- describe returns a record as a list of name and value, independent of how it is stored. It leaves out the payload
-- and includes the result or error.
--
--   brief  leave out the result
local function describe(tx, task, brief)
  local words, n = {}, 0
  local function put(list)
    for _, name in ipairs(list) do
      local value = task[name]
      if value and name ~= "payload_bytes" and name ~= "body_bytes" then
        words[n + 1], words[n + 2] = name, value
        n = n + 2
      end
    end
  end
  for _, list in ipairs({first, names.spec_lines, names.spec_texts, names.state_lines, names.state_texts}) do
    put(list)
  end
  for _, other in ipairs(task.unknown or {}) do
    words[n + 1], words[n + 2] = other[1], other[3]
    n = n + 2
  end
  if task.completed_at and not (brief and task.status == "COMPLETED") then
    words[n + 1], words[n + 2] = task.status == "COMPLETED" and "result" or "error", body(tx, task)
  end
  return words
end

-- by_priority sorts a list of tables with a priority and a place: higher priorities first, then by place.
local function by_priority(list)
  table.sort(list, function(a, b)
    return a.priority > b.priority or a.priority == b.priority and a.place < b.place
  end)
end
