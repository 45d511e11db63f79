-- create writes a new task, all of whose fields are known to be sound, and puts it
-- where it belongs: in line, on the clock of delayed ones, or nowhere if no worker
-- runs it (role: promise or timer).
--
--   task  id, kind, queue, and its other fields as they are stored; payload apart
--
-- @include stamp
-- @include later
-- @include alarm
-- @include ready
-- @include arm
-- @include count
-- @include emit
local function create(k, task, at)
  local final = task["until"] or task.deadline_at
  if task.warn_percent and final then
    task.warn_at = string.format("%d", at + math.floor((final - at) * task.warn_percent / 100))
  end
  local fields, n = {"version", "1", "status", "PENDING", "created_at", stamp(k, at)}, 6
  for name, value in pairs(task) do
    if name ~= "id" and name ~= "payload" then
      fields[n + 1] = name
      fields[n + 2] = value
      n = n + 2
    end
  end
  redis.call("HSET", k.task .. task.id, unpack(fields))
  if task.payload and task.payload ~= "" then
    redis.call("SET", k.payload .. task.id, task.payload)
  end
  if task.deadline_at then
    later(k, "ZADD", k.deadlines, task.id, task.deadline_at)
    alarm(k, tonumber(task.deadline_at))
  end
  if task.warn_at then
    arm(k, task)
  end
  if task.available_at then
    later(k, "ZADD", k.delayed, task.id, task.available_at)
    alarm(k, tonumber(task.available_at))
  elseif not task.role then
    ready(k, task, at)
  end
  count(k, task.queue, "enqueued", 1)
  emit(k, "all", "task_enqueued", task, at)
end
