-- take claims one task that is in line for a worker. It returns nil if the task is not given out: it has ended, ends
-- now, does not exist, cannot be read, or does not fit into the reply.
--
--   line  the key of its line   ask  task/read_ask.lua   got  what the call gives out so far (task/claim.lua)
--
-- @use store/emit
-- @use store/index
-- @use store/record
-- @use queue/count
-- @use task/incarnation
-- @use task/idempotency
-- @use task/is_attempt_limit
-- @use task/load_task
-- @use task/mend_place
-- @use task/payload
-- @use task/put_aside
-- @use task/set_limit

-- fits reports whether a task fits into the 4 MiB of a call, beside the tasks given out and the outcomes that came
-- with the request. The first task always fits.
local function fits(task, got)
  local size = #task.spec + (tonumber(task.payload_bytes or nil) or 0)
  if got.bytes > 0 and got.carried + got.bytes + size > 4194304 then
    got.full = true
    return false
  end
  got.bytes = got.bytes + size
  return true
end

local function run(tx, task, ask)
  local line = task.queue_timeout_ms and not is_attempt_limit(task) and task.limit_at or nil
  if line ~= (task.line_at or nil) then
    record.set(tx, task, "line_at", line) -- if its worker has no handler for it, its time in line continues
  end
  task.status, task.worker = "RUNNING", ask.worker
  local first = not task.epoch
  task.epoch = first and incarnation.first_epoch(task) or string.format("%d", task.epoch + 1)
  record.touch(tx, task)
  local instant = task.attempt_timeout_ms and tx.at + task.attempt_timeout_ms
  if task.rich then
    record.set(tx, task, "lost_by", nil)
    record.set(tx, task, "release_reason", nil)
  end
  if task.woken then -- its attempt continues
    instant = tonumber(task.attempt_at or nil)
    record.set(tx, task, "woken", nil)
    record.set(tx, task, "attempt_at", nil)
  else
    task.started_at = tx.now
  end
  if task.limit_at or instant then
    set_limit(tx, task, instant)
  end
  if task.idempotency_scope == "started" and first then
    idempotency.free(tx, task.idempotency_key)
  end
end

local function take(tx, id, line, ask, got)
  local task = load_task(tx, id)
  if not task or task.status ~= "PENDING" or task.available_at then
    index.remove(tx, line, id) -- the record decides, and the line was wrong
    if task then
      mend_place(tx, task)
    end
    return nil
  elseif task.put_back_now or not fits(task, got) then -- load_task may have ended the attempt of a woken agent
    return nil
  end
  local handed = task.payload_bytes and payload(tx, task)
  if task.payload_bytes and not handed then
    put_aside(tx, id, "its payload is lost")
    index.remove(tx, line, id)
    return nil
  end
  run(tx, task, ask)
  index.remove(tx, line, id)
  index.add(tx, tx.key.claims .. ask.worker, string.format("%d", ask.seq), id)
  count.run(tx, task.queue, ask.worker, 1)
  emit(tx, "all", "task_started", task)
  got.tasks[#got.tasks + 1], got.payloads[id] = task, handed
  return task
end
