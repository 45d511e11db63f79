-- forget_sooner sets when the idempotency key of an ended task is forgotten, now that its record is removed before its
-- retention is over. As after the retention, a key without a scope is kept for a day after the end, or as long as
-- the record if that is longer.
--
--   ended, removed  instants
--
-- @use store/alarm
-- @use store/index
-- @use store/new_score
-- @use task/idempotency
local function forget_sooner(tx, task, ended, removed)
  local key = task.idempotency_key
  if not key or task.idempotency_scope or idempotency.find(tx, key) ~= task.id then
    return
  end
  local forgotten = tonumber(new_score(tx, tx.key.forget, key))
  local sooner = math.max(ended + 86400000, removed)
  if forgotten and sooner < forgotten then
    index.add(tx, tx.key.forget, string.format("%d", sooner), key)
    alarm.note(tx, sooner)
  end
end
