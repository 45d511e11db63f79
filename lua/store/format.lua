-- format writes the state of a task as text (store/parse.lua reads it).
--
--   body  the result or error of an ended task, if it is stored in the state; otherwise ""
--
-- @use store/names

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

local function format(task, body)
  return task.status .. " " .. (task.epoch or "-") .. " " .. (task.worker or "-") .. " " .. (task.started_at or "-") .. " " ..
    (task.retries or "-") .. " " .. (task.completed_at or "-") .. " " .. (task.call or "-") .. "\n" ..
    (task.rich and head(task) or "\n") .. body
end
