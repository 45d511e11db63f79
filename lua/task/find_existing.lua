-- find_existing returns the answer for a task that exists already, or nil for a new one.
--
-- @use store/record
-- @use task/left_behind
-- @use task/load_task
-- @use task/idempotency
-- @use task/payload

-- by_key returns the answer if the task's idempotency key belongs to another task. If a scope ends the key with that
-- task, and the task ends now, the key is free.
local function by_key(tx, task, key)
  local id, digest, why = idempotency.find(tx, key)
  if not id then
    return why and {"BROKEN", task.id, why}
  end
  tx.on = id
  local first
  first, why = load_task(tx, id)
  tx.on = nil
  if not first then
    return {"BROKEN", task.id, why}
  elseif not idempotency.find(tx, key) then
    return nil
  elseif digest ~= idempotency.digest(task.shape.fields.kind, task.payload) then
    return {"CONFLICT", id}
  end
  return {id == task.id and "OK" or "KNOWN", id, first.deadline_at or ""}
end

local function by_id(tx, task)
  local old, why = record.get(tx, task.id)
  if not old then
    return {"BROKEN", task.id, why}
  end
  task.replaces = left_behind(tx, old) and old or nil
  if not old.status or task.replaces then
    return nil
  end
  local f, stored = task.shape.fields, payload(tx, old)
  if not stored then
    return {"BROKEN", task.id, "its payload is lost"}
  elseif old.kind == f.kind and old.queue == f.queue and stored == task.payload then
    local mine = not f.enqueued_by or f.enqueued_by == old.enqueued_by
    return {mine and "OK" or "KNOWN", task.id, old.deadline_at or ""}
  end
  return {"TAKEN", task.id}
end

local function find_existing(tx, task)
  local answer = (tx.some_exist or tx.tasks[task.id]) and by_id(tx, task)
  local key = task.shape.fields.idempotency_key
  if answer or not key or string.find(task.id, ".", 1, true) then
    return answer or nil
  end
  return by_key(tx, task, key) or nil
end
