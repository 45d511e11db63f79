-- When the record of an ended task is removed.
--
-- @use store/index: index, new_score
-- @use store/later
-- @use store/messages: alarm
-- @use store/record: owner_state, record
-- @use store/state: live, retention
-- @use task/identity: drained, idempotency, incarnation

-- remove_record removes the record of an ended task. No other file removes one. The idempotency key of the task is
-- left to the clock `forget`.
--
-- Returns the size of its payload and its result in bytes
local function remove_record(tx, task)
  local key, id = tx.key, task.id
  incarnation.past(tx, task)
  later.drop(tx, key.spec .. id)
  later.drop(tx, key.state .. id)
  later.drop(tx, key.children .. id)
  if task.payload_bytes then
    later.drop(tx, key.payload .. id)
  end
  if task.body_bytes then
    later.drop(tx, key.result .. id)
  end
  index.remove(tx, key.dead .. task.queue, id)
  index.remove(tx, key.retained, id)
  return (tonumber(task.payload_bytes) or 0) + (tonumber(task.body_bytes) or 0)
end

-- schedule_removal sets when a terminal task's record is removed: after its retention. A child's retention starts when
-- its owner has ended, so that the owner can read it.
--
-- What happens to an idempotency key depends on its scope. A key of scope "window" got its end when the task was
-- created. A key of scope "started" was freed by the first claim; without a claim it is freed now. A key of scope
-- "finished" is freed now. A key without a scope is kept for a day, or until the record is removed if that is later.
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

-- hooked returns the id of a hook of the task that has not ended, or nil if all have ended. The record of a task is kept
-- until its hook has ended: otherwise another task could use the id, and its own hook could not be made.
local function hooked(tx, task)
  for _, event in ipairs({"success", "failure", "timeout", "cancel"}) do
    local hook = task["hook_" .. event] and record.get(tx, task.id .. "!" .. event)
    if hook and live(hook) then
      return hook.id
    end
  end
end

-- keeps_record returns why the record of a task cannot be deleted, as an answer of the call delete; nil if it can.
local function keeps_record(tx, task)
  local owner, hook = owner_state(tx, task), hooked(tx, task)
  if live(task) then
    return {"LIVE", task.status}
  elseif owner then
    return {"OWNED", owner.id}
  elseif task.children and drained(tx, task.id) then
    return {"DRAINING", task.id}
  elseif task.owner and drained(tx, task.owner) then
    return {"DRAINING", task.owner}
  elseif hook then
    return {"HOOKED", hook}
  end
end

-- forget_sooner sets when the idempotency key of an ended task is forgotten, now that its record is removed before its
-- retention is over. As after the retention, a key without a scope is kept for a day after the end, or as long as
-- the record if that is longer.
--
--   ended, removed  instants
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
