-- repair_key makes an idempotency key end when its task's scope says so. If the instant is lost, or the record of the task
-- is gone, the key ends in a day. A key that is kept too long cannot cause a second task.
--
-- Returns what it does, or nil and why it can do nothing
--
-- @use store/record
-- @use task/idempotency
-- @use store/live
-- @use repair/mend

-- free removes a key.
local function free(tx, r, key)
  idempotency.free(tx, key)
  mend.must(tx, r, "forget", key)
  r[#r + 1] = "remove from idem"
end

local function end_in_a_day(tx, r, key)
  if not mend.has(tx, "forget", key) then
    mend.must(tx, r, "forget", key, tx.at + 86400000)
  end
end

local function repair_key(tx, _, key)
  local id = idempotency.holder(tx, key)
  local r, task, why = {}, nil, nil
  if not id then
    mend.must(tx, r, "forget", key)
    return r
  end
  task, why = record.get(tx, id)
  if not task then
    return nil, why
  end
  local scope = task.idempotency_scope
  if not task.status or scope == "window" and task.idempotency_key == key then
    end_in_a_day(tx, r, key)
  elseif task.idempotency_key ~= key or scope and (not live(task) or scope == "started" and task.epoch) then
    free(tx, r, key)
  elseif live(task) then
    mend.must(tx, r, "forget", key)
  else
    end_in_a_day(tx, r, key)
  end
  return r
end
