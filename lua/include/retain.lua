-- retain says when a terminal task's record goes: after its retention, at least
-- 60 s, since a caller may repeat a call for 30 s and must meet the record.
-- A child's retention starts when its owner has ended, so the owner can read it.
--
-- FAILED and CANCELLED are kept long, so a queue keeps at most 100,000 of them.
--
-- What becomes of an idempotency key depends on its scope: "window" was settled when
-- the task was created, "started" when it was first claimed, "finished" is settled
-- now; any other key outlives the record.
--
-- @include later
-- @include write
local function retain(k, task, at)
  local span = task.retention_ms or (task.status == "COMPLETED" and "900000" or "604800000")
  k.goes = k.goes or {}
  local goes = k.goes[span]
  if not goes then
    goes = string.format("%d", at + math.max(tonumber(span), 60000))
    k.goes[span] = goes
  end
  later(k, "ZADD", k.retained, task.id, goes)
  if task.status ~= "COMPLETED" then
    later(k, "ZADD", k.dead .. task.queue, task.id, task.completed_at)
    k.buried = k.buried or {}
    k.buried[task.queue] = true
  end
  local key, scope = task.idempotency_key, task.idempotency_scope
  if not key or scope == "window" then
    return
  elseif not scope then
    later(k, "ZADD", k.forget, key, string.format("%d", math.max(goes, at + 86400000)))
  elseif scope == "finished" or not task.epoch then
    write(k, "HDEL", k.idem, key)
  end
end
