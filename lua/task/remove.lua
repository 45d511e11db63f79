-- remove removes the record of a task that has ended, with its payload, its result, and its places in sorted sets.
--
-- @use store/index
-- @use store/later
local function remove(tx, task)
  local key, id = tx.key, task.id
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
end
