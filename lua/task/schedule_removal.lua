-- schedule_removal says when a terminal task's record goes: after its retention, at least 60 s, since a
-- caller may repeat a call for 30 s and must meet the record. A child's retention starts when its owner
-- has ended, so that the owner can read it.
--
-- What becomes of an idempotency key depends on its scope: "window" was settled when the task was
-- created, "started" when it was first claimed, "finished" is settled now; any other key outlives the
-- record.
--
-- @use store/index
-- @use task/idempotency
local function schedule_removal(tx, task)
  local span = tonumber(task.retention_ms or task.status == "COMPLETED" and 900000 or 604800000)
  local goes = tx.at + math.max(span, 60000)
  index.add(tx, tx.key.retained, string.format("%d", goes), task.id)
  if task.status ~= "COMPLETED" then
    index.add(tx, tx.key.dead .. task.queue, task.completed_at, task.id)
  end
  local key, scope = task.idempotency_key, task.idempotency_scope
  if not key or scope == "window" then
    return
  elseif not scope then
    index.add(tx, tx.key.forget, string.format("%d", math.max(goes, tx.at + 86400000)), key)
  elseif scope == "finished" or not task.epoch then
    idempotency.free(tx, key)
  end
end
