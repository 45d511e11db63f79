-- remove_record removes the record of an ended task. No other file removes one. The idempotency key of the task is
-- left to the clock `forget`.
--
-- Returns the size of its payload and its result in bytes
--
-- @use store/index
-- @use store/later
-- @use task/incarnation
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
  return (tonumber(task.payload_bytes or nil) or 0) + (tonumber(task.body_bytes or nil) or 0)
end
