-- repair_key_of makes the idempotency key of a live task lead to it. If the key leads to another live task that has it
-- too, both were created while the entry was missing: repair_key_of returns that, and changes nothing.
--
-- @use store/record
-- @use task/idempotency
-- @use store/live
-- @use task/payload
local function repair_key_of(tx, s, r, task)
  local key, scope = task.idempotency_key, task.idempotency_scope
  if not key or scope == "window" or scope == "started" and task.epoch then
    return nil
  end
  local id = idempotency.holder(tx, key)
  if id == task.id then
    return nil
  end
  local other = id and record.get(tx, id)
  if other and live(other) and other.idempotency_key == key then
    return "the live task " .. id .. " has the same idempotency key"
  end
  local text = payload(tx, task)
  if not text then
    return "its payload is lost"
  end
  s.size = s.size + #text
  idempotency.keep(tx, key, task.id, idempotency.digest(task.kind, text))
  r[#r + 1] = "add its key to idem"
end
