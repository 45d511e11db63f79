-- format writes the state of a task as text (store/parse.lua reads it).
--
--   body  the result or error of an ended task that stands in the state; "" for none
--
-- @use store/names

-- head is what a task has beside its first line: lines, and the texts that follow them.
local function head(task)
  local lines, texts, n = {}, "", 0
  for _, name in ipairs(names.state_lines) do
    local value = task[name]
    if value then
      n = n + 1
      lines[n] = name .. "=" .. value .. "\n"
    end
  end
  for _, name in ipairs(names.state_texts) do
    local value = task[name]
    if value then
      n = n + 1
      lines[n], texts = name .. ":" .. #value .. "\n", texts .. value
    end
  end
  for _, other in ipairs(task.unknown or {}) do
    local text = other[2] == ":"
    n = n + 1
    lines[n] = other[1] .. other[2] .. (text and #other[3] or other[3]) .. "\n"
    texts = text and texts .. other[3] or texts
  end
  return table.concat(lines) .. "\n" .. texts
end

local function format(task, body)
  return task.status .. " " .. (task.epoch or "-") .. " " .. (task.worker or "-") .. " " .. (task.started_at or "-") .. " " ..
    (task.retries or "-") .. " " .. (task.completed_at or "-") .. " " .. (task.call or "-") .. "\n" ..
    (task.rich and head(task) or "\n") .. body
end
