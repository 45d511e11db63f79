-- hook enqueues the task that follows the end of another one. The hook is a root task. Its id is the ended task's id,
-- a bang and the event, so a task has at most one hook for each event. A hook has 5 minutes unless its kind says
-- otherwise, and no hooks, even if its kind has some. Its payload is a JSON object that says what ended and how.
--
--   event  success, failure, timeout or cancel
--   asked  the hook's kind, and its queue after a space if it is not "default"
--
-- @use store/record
-- @use task/create
-- @use task/defaults
-- @use task/draft
-- @use task/left_behind
-- @use task/remove_record

local function told(task, event)
  local words = {'"event":"' .. event .. '"', '"task_id":' .. cjson.encode(task.id)}
  for _, name in ipairs({"kind", "queue", "reason", "timeout_type", "error", "status"}) do
    if task[name] then
      words[#words + 1] = '"' .. name .. '":' .. cjson.encode(task[name])
    end
  end
  if task.code and (task.reason == "error" or task.reason == "failed") then
    words[#words + 1] = '"code":' .. task.code
  end
  for _, name in ipairs({"created_at", "started_at", "deadline_at", "completed_at"}) do
    if task[name] then
      words[#words + 1] = '"' .. name .. '":' .. task[name]
    end
  end
  return "{" .. table.concat(words, ",") .. "}"
end

-- traced returns the trace context among the headers of a task as headers of its hook, so that the trace of the hook leads
-- to the sender of the task. It leaves out values that are not valid, and returns nil if none is left.
local function traced(headers)
  if not headers or not string.find(string.lower(headers), '"trace', 1, true) then
    return nil
  end
  local ok, all = pcall(cjson.decode, headers)
  local found, words = {}, {}
  for name, value in pairs(ok and type(all) == "table" and all or {}) do
    if type(name) == "string" and type(value) == "string" and #value <= 512 then
      found[string.lower(name)] = value
    end
  end
  for _, name in ipairs(found.traceparent and {"traceparent", "tracestate"} or {}) do
    words[#words + 1] = found[name] and '"' .. name .. '":' .. cjson.encode(found[name])
  end
  return words[1] and "{" .. table.concat(words, ",") .. "}"
end

local function hook(tx, task, event, asked)
  local id = task.id .. "!" .. event
  local old = record.get(tx, id)
  if not old or old.status and not left_behind(tx, old) then
    return
  elseif old.status then
    remove_record(tx, old)
  end
  local kind, queue = string.match(asked, "^(%S+) ?(%S*)$")
  local f = {kind = kind, queue = queue ~= "" and queue or "default", hook_of = task.id, headers = traced(task.headers)}
  for name, value in pairs(defaults(tx, kind)) do
    if string.sub(name, 1, 5) ~= "hook_" then -- otherwise a kind could call itself without end
      f[name] = value
    end
  end
  create(tx, id, told(task, event), draft(tx, f, {deadline = tx.at + (tonumber(f.timeout_ms) or 300000), of = task}))
end
