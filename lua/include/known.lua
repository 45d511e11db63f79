-- known answers for a task that is there already, and returns nil for a new one. It
-- looks for its id only if handed.lua has found that one of the call's is there.
--
-- @include overdue
-- @include live

-- held is the id that an idempotency key stands for, and the digest of its content;
-- nil if it is free. A key whose time is up is free though no reaper has seen it.
local function held(k, key, at)
  local first = redis.call("HGET", k.idem, key)
  if not first then
    return nil
  end
  local id, digest = string.match(first, "^(%S+) (%x+)$")
  local forgotten = tonumber(redis.call("ZSCORE", k.forget, key))
  if forgotten and forgotten <= at then
    redis.call("HDEL", k.idem, key)
    redis.call("ZREM", k.forget, key)
    return nil
  end
  local task = overdue(k, id, at)
  if task.status and not live(task) and redis.call("HGET", k.idem, key) ~= first then
    return nil -- it was the task's until its end, which is now
  end
  return id, digest, task
end

local function known(k, task, at)
  if k.perhaps and redis.call("EXISTS", k.task .. task.id) == 1 then
    local old = redis.call("HMGET", k.task .. task.id, "kind", "queue", "deadline_at")
    local payload = redis.call("GET", k.payload .. task.id) or ""
    if old[1] == task.kind and old[2] == task.queue and payload == (task.payload or "") then
      return {"OK", task.id, old[3] or ""}
    end
    return {"TAKEN", task.id}
  end
  if not task.idempotency_key then
    return nil
  end
  local id, digest, first = held(k, task.idempotency_key, at)
  if not id then
    return nil
  elseif digest ~= redis.sha1hex(task.kind .. "\n" .. (task.payload or "")) then
    return {"CONFLICT", id}
  end
  return {id == task.id and "OK" or "KNOWN", id, first.deadline_at or ""}
end
