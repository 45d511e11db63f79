-- repairs has a function for each thing that can be repaired (call/repair.lua lists them). Each takes s, what belongs to the
-- whole call, the subject, and where; and returns what it does, or nil and why it can do nothing.
--
-- @use queue/controlled
-- @use repair/repair_ends
-- @use repair/repair_key
-- @use repair/repair_queue
-- @use repair/repair_task
-- @use repair/repair_wait
-- @use repair/repair_waiting
-- @use repair/repair_worker
-- @use store/later
local repairs = {task = repair_task, wait = repair_wait, ends = repair_ends, queue = repair_queue, key = repair_key, waiting = repair_waiting}

function repairs.worker(tx, _, name)
  local r = {}
  if redis.call("EXISTS", tx.key.claims .. name, tx.key.worker .. name) > 0 then
    repair_worker(tx, r, name)
  end
  return r
end

function repairs.kind(tx, _, name)
  if redis.call("EXISTS", tx.key.figures .. name) == 0 or redis.call("SISMEMBER", tx.key.kinds, name) == 1 then
    return {}
  end
  later.before(tx, "SADD", tx.key.kinds, name)
  return {"add to kinds"}
end

-- A count that is lost cannot be counted again: it begins anew.
function repairs.figure(tx, _, kind, field)
  local value = redis.call("HGET", tx.key.figures .. kind, field)
  if not value or field == "about" or string.find(value, "^%d+$") and #value <= 16 then
    return {}
  end
  later.before(tx, "HDEL", tx.key.figures .. kind, field)
  return {"remove what is no count, so that it counts from 0 again"}
end

function repairs.controls(tx)
  local some = controlled(tx, "", {})
  if some then
    later.before(tx, "HSET", tx.key.root, "controlled", some)
    return {"note that a queue has controls"}
  end
  later.before(tx, "HDEL", tx.key.root, "controlled")
  return {"note that no queue has controls"}
end

function repairs.running(tx, _, _, where)
  tx.recount = where == "go on" and where or true
  return {"count running tasks again"}
end
