-- drain: a client cancels the tasks in the line of a queue, in chunks. Tasks that run, and tasks that start
-- later, are left alone. So is an agent whose attempt times out in this call and is retried later.
--
-- ARGV[1]  call: a repeat of this call has the same; each chunk needs a new one
-- ARGV[2]  queue
-- ARGV[3]  how many tasks at the most, up to 500
-- ARGV[4]  reason, opaque, up to 8192 bytes; "" for none
--
-- Returns  {"OK", n, left}  this call cancelled n tasks (a repeat gets the same n); left tasks are still in line
-- Ends     CANCELLED; FAILED if the time of the task was up
-- Flags    allow-oom        a full Redis must still drain
--
-- @use check/names
-- @use check/whole
-- @use store/answer
-- @use store/begin
-- @use store/index
-- @use store/later
-- @use store/read_root
-- @use store/record
-- @use store/unit
-- @use task/cancelled
-- @use task/finish
-- @use task/load_task
-- @use task/mend_place

local function drain_some(tx, d)
  local line, about = tx.key.ready .. d.queue, tx.key.queue .. d.queue
  local known = redis.call("SISMEMBER", tx.key.queues, d.queue) == 1
  local last = redis.call("HMGET", about, "drained_by", "drained")
  if last[1] == d.call then
    return tonumber(last[2])
  end
  local n = 0
  local ids = redis.call("ZRANGE", line, 0, d.most - 1)
  record.load(tx, ids)
  for _, id in ipairs(ids) do
    tx.on = id
    local task = load_task(tx, id)
    if task and task.status == "PENDING" and not task.available_at then
      finish(tx, task, cancelled(d.reason, d.call))
      n = n + 1
    else
      index.remove(tx, line, id) -- the record decides: it is not ready, or its retry has a delay
      if task then
        mend_place(tx, task)
      end
    end
  end
  if known then
    later.after(tx, "HSET", about, "drained_by", d.call, "drained", string.format("%d", n))
  end
  return n
end

local function drain(keys, argv)
  local d = {call = names.word("call", argv[1]), queue = argv[2] or "", most = whole(argv[3], 1, 500), reason = argv[4]}
  local _, why = names.queue(d.queue)
  if why then
    error("argument 2: a queue " .. why, 0)
  elseif not d.most then
    error("argument 3 must be the number of tasks, 1 to 500", 0)
  elseif #(d.reason or "") > 8192 then -- each task keeps it
    error("argument 4 must be a reason of up to 8192 bytes", 0)
  end
  local tx = read_root(begin(keys[1]))
  local n = unit(tx, drain_some, d)
  return answer(tx, {"OK", n, redis.call("ZCARD", tx.key.ready .. d.queue)})
end
