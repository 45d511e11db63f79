-- schedule_removal sets when a terminal task's record is removed: after its retention. A child's retention starts when
-- its owner has ended, so that the owner can read it.
--
-- What happens to an idempotency key depends on its scope. A key of scope "window" got its end when the task was
-- created. A key of scope "started" was freed by the first claim; without a claim it is freed now. A key of scope
-- "finished" is freed now. A key without a scope is kept for a day, or until the record is removed if that is later.
--
-- @use store/index
-- @use task/idempotency
-- @use task/retention
local function schedule_removal(tx, task)
  local goes = tx.at + retention(task)
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
