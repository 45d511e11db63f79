-- claim hands ready tasks to a worker: the first round gives each queue up to
-- its quota in the order asked, the second what is left, in the same order.
--
--   ask  worker, seq, n, lease (ms), quotas {queue, n, queue, n, ...}
--
-- One call gives 500 at the most: Redis does nothing else meanwhile.
--
-- seq grows with each fetch of a worker. One that was seen before is a repeat
-- after a lost answer, and gets the tasks of that fetch that are still held.
--
-- Returns {more, {id, epoch, queue, kind, payload, ...}, ...} and a list of what
-- could not be worked with; more is 1 if the queues asked hold more. The order of a claim's elements is
-- that of `parcels`. A queue gives no more than its controls allow (room.lua).
--
-- @include overdue
-- @include limit
-- @include write
-- @include room
-- @include spend
-- @include later
-- @include count
-- @include stamp
-- @include alarm
-- @include emit
-- @include guard
-- @include flush
local function claim(k, ask, at)
  local claims, worker = k.claims .. ask.worker, k.worker .. ask.worker
  local seq = string.format("%d", ask.seq)
  local taken, payloads, errors, more = {}, {}, {}, 0

  local function keep(task)
    taken[#taken + 1] = task
    payloads[#payloads + 1] = k.payload .. task.id
  end

  local function parcels()
    local answer = {more}
    local found = #taken > 0 and redis.call("MGET", unpack(payloads)) or {}
    for i, task in ipairs(taken) do
      answer[i + 1] = {task.id, task.epoch, task.queue, task.kind, found[i] or "", task.headers or "", task.created_at,
        task["until"] or task.deadline_at or "", task.limit_at or "", task.retries or "0", task.max_retries or "0",
        task.lease_losses or "0", task.priority or "0", task.retry_expression or "",
        task.journal or ""}
    end
    return answer, errors
  end

  local function take(id)
    local task = overdue(k, id, at)
    if task.status ~= "PENDING" or task.requeued then -- the attempt of who was woken may end just now
      return nil
    end
    if task.lost_by then
      redis.call("HDEL", k.task .. id, "lost_by")
    end
    task.status, task.worker = "RUNNING", ask.worker
    task.epoch = task.epoch and string.format("%d", task.epoch + 1) or "1"
    local instant = task.attempt_timeout_ms and at + task.attempt_timeout_ms
    if task.woken then -- its attempt goes on
      redis.call("HDEL", k.task .. id, "woken", "attempt_at")
      instant = tonumber(task.attempt_at)
      task.woken, task.attempt_at = nil, nil
    else
      task.started_at = stamp(k, at)
    end
    redis.call("HSET", k.task .. id, "status", "RUNNING", "worker", ask.worker,
      "epoch", task.epoch, "started_at", task.started_at)
    if task.limit_at or instant then
      limit(k, task, instant)
    end
    if task.idempotency_scope == "started" and task.epoch == "1" then
      write(k, "HDEL", k.idem, task.idempotency_key)
    end
    later(k, "ZADD", claims, id, seq)
    count(k, task.queue, "running", 1)
    emit(k, "all", "task_started", task, at)
    return task
  end

  -- A pop may meet tasks that are ended instead of handed out, so it goes on;
  -- but a line of nothing but late tasks must not hold the server.
  local left = math.min(ask.n, 500)
  local looks = left + 100
  local function draw(queue, want)
    local free = room(k, queue, at)
    local given = math.min(want, free.n)
    want = given
    while want > 0 and looks > 0 do
      local popped = redis.pcall("ZPOPMIN", k.ready .. queue, math.min(want, looks))
      if popped.err then
        errors[#errors + 1] = k.ready .. queue .. ": " .. popped.err
      end
      if #popped == 0 then
        break
      end
      looks = looks - #popped / 2
      for i = 1, #popped, 2 do
        local got = guard(k, popped[i], at, take, popped[i])
        if got then
          keep(got)
          want, left = want - 1, left - 1
        end
      end
    end
    spend(k, queue, free, given - want)
  end

  -- A key of the wrong type is met before the first write, not after it.
  local newest = tonumber(redis.call("HGET", worker, "seq") or 0)
  redis.call("ZCARD", claims)
  redis.call("ZADD", k.workers, at + ask.lease, ask.worker)
  alarm(k, at + ask.lease)
  if ask.seq <= newest then
    for _, id in ipairs(redis.call("ZRANGEBYSCORE", claims, ask.seq, ask.seq)) do
      local task = guard(k, id, at, overdue, k, id, at)
      if task and task.status == "RUNNING" and task.worker == ask.worker then
        keep(task)
      end
    end
    return parcels()
  end
  redis.call("HSET", worker, "seq", ask.seq)
  for round = 1, 2 do
    for i = 1, #ask.quotas, 2 do
      draw(ask.quotas[i], round == 1 and math.min(tonumber(ask.quotas[i + 1]), left) or left)
    end
  end
  errors[#errors + 1] = flush(k, at)

  -- Pass the baton: the token that brought this worker may stand for many tasks.
  for i = 1, #ask.quotas, 2 do
    local queue = ask.quotas[i]
    local ready = redis.pcall("ZCARD", k.ready .. queue)
    if type(ready) == "number" then
      local gives = ready > 0 and room(k, queue, at).n > 0
      if gives then
        more = 1
      else
        redis.call("DEL", k.wake .. queue)
      end
      if ready > 0 then
        k.woken[queue] = true
      end
    end
  end
  return parcels()
end
