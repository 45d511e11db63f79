-- create makes a new task, all of whose fields are valid. The task gets in line, or on the clock of delayed tasks.
-- A promise gets in neither, since no worker runs it.
--
-- @use store/emit
-- @use store/index
-- @use store/later
-- @use store/own
-- @use store/record
-- @use store/tally
-- @use queue/count
-- @use queue/place
-- @use task/idempotency

local function spec(tx, id, payload, d)
  local lines, least = d.lines, tx.number or tx.root.number
  if least > tx.at then -- the clock was set back (task/incarnation.lua)
    lines = lines .. "number=" .. string.format("%d", least) .. "\n"
  end
  if #payload <= record.inline then
    return lines .. d.texts .. payload
  end
  later.before(tx, "SET", tx.key.payload .. id, payload)
  own(tx, "large")[id] = payload
  return lines .. "payload_bytes=" .. #payload .. "\n" .. d.texts
end

local function create(tx, id, payload, d)
  record.add(tx, id, spec(tx, id, payload, d), d.state)
  if d.deadline_at then
    index.add_new(tx, tx.key.deadlines, d.deadline_at, id)
  end
  if d.limit then
    index.add_new(tx, tx.key.limits, d.limit, id)
  end
  if d.available_at then
    index.add_new(tx, tx.key.delayed, d.available_at, id)
  elseif not d.role then
    place(tx, id, d.queue, d.priority, "new")
  end
  if d.key then
    idempotency.keep(tx, d.key, id, idempotency.digest(d.kind, payload), d.window)
  end
  count.add(tx, d.queue, "enqueued", 1)
  tally.add(tx, d, d.enqueued)
  if tx.root.level == "all" then
    emit(tx, "all", "task_enqueued", {id = id, kind = d.kind, queue = d.queue, created_at = tx.now, node = d.node})
  end
end
