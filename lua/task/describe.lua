-- describe returns a record as a list of name and value, independent of how it is stored. It leaves out the payload
-- and includes the result or error.
--
--   brief  leave out the result
--
-- @use store/names
-- @use task/body
local first = {"status", "kind", "queue", "created_at", "deadline_at", "until", "epoch", "worker", "started_at", "retries",
  "completed_at", "call"}

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
