-- hook enqueues the task that somebody wants to run when another one has ended: a root
-- task whose id is the ended one's, a bang and the event, so there is one at the most.
-- It has 5 minutes unless its kind says otherwise, and no hooks of its own. Its
-- payload is a JSON object that says what ended and how.
--
--   event  success, failure, timeout or cancel
--   asked  the hook's kind, and its queue after a space if it is not "default"
--
-- @include defaults
-- @include stamp
-- @include create
local function hook(k, task, event, asked, at)
  local kind, queue = string.match(asked, "^(%S+) ?(%S*)$")
  local own = {id = task.id .. "!" .. event, kind = kind, queue = queue ~= "" and queue or "default", hook_of = task.id}
  for name, value in pairs(defaults(k, kind)) do
    own[name] = value
  end
  own.deadline_at = string.format("%d", at + (tonumber(own.timeout_ms) or 300000))
  own.timeout_ms = nil

  if redis.call("EXISTS", k.task .. own.id) == 1 then
    return -- the id of the ended task was used before, and so was its hook's
  end
  local told = {'"event":"' .. event .. '"'}
  for _, name in ipairs({"task_id", "kind", "queue", "reason", "timeout_type", "error", "code", "status"}) do
    local value = name == "task_id" and task.id or task[name]
    if value and (name ~= "code" or task.reason == "error" or task.reason == "failed") then
      told[#told + 1] = '"' .. name .. '":' .. cjson.encode(value)
    end
  end
  for _, name in ipairs({"created_at", "started_at", "deadline_at", "completed_at"}) do
    if task[name] then
      told[#told + 1] = '"' .. name .. '":' .. task[name]
    end
  end
  own.payload = "{" .. table.concat(told, ",") .. "}"
  create(k, own, at)
end
