-- claim hands ready tasks to a worker: the first round gives each queue up to its quota in the order asked,
-- the second what is left, in the same order. A queue gives no more than its controls allow.
--
--   ask  task/read_ask.lua
--
-- One call gives 500 tasks and 4 MiB at the most, and looks at 256 queues: Redis does nothing else
-- meanwhile. A worker of more queues looks at others the next time.
--
-- Returns the claims, as task/parcels.lua has them
--
-- @use store/alarm
-- @use store/index
-- @use store/later
-- @use store/record
-- @use store/try
-- @use queue/free_slots
-- @use queue/use_rate
-- @use task/load_task
-- @use task/parcels
-- @use task/take

-- draw takes up to so many tasks from a queue. It may meet tasks that are ended instead of handed out, so
-- it goes on; but a line of nothing but late tasks must not hold the server.
local function draw(tx, ask, got, queue, want)
  local key, free = tx.key.ready .. queue, free_slots(tx, queue)
  local given = math.min(want, free.n, got.left)
  local taken, from = 0, got.from[queue] or 0
  while taken < given and got.looks > 0 and not got.full do
    local ids = try(tx, "ZRANGE", key, from, from + math.min(given - taken, got.looks) - 1)
    if not ids or #ids == 0 then
      break
    end
    from, got.looks = from + #ids, got.looks - #ids
    record.load(tx, ids)
    for _, id in ipairs(ids) do
      tx.on = id
      if got.full then
        from = from - 1
      elseif take(tx, id, key, ask, got) then
        taken = taken + 1
      end
    end
  end
  got.from[queue], got.left = from, got.left - taken
  use_rate(tx, queue, free, taken)
end

-- repeated are the tasks of an earlier ask of the same seq that are still held.
local function repeated(tx, ask, got)
  local ids = redis.call("ZRANGEBYSCORE", tx.key.claims .. ask.worker, string.format("%d", ask.seq), string.format("%d", ask.seq))
  record.load(tx, ids)
  for _, id in ipairs(ids) do
    tx.on = id
    local task = load_task(tx, id)
    if task and task.status == "RUNNING" and task.worker == ask.worker then
      got.tasks[#got.tasks + 1] = task
    end
  end
end

-- window is which queues this ask looks at.
local function window(ask)
  local n, first = #ask.queues, 0
  if n > 256 then
    first = ask.seq * 256 % n
  end
  local some = {}
  for i = 1, math.min(n, 256) do
    some[i] = (first + i - 1) % n + 1
  end
  return some
end

local function claim(tx, ask)
  local key = tx.key
  local got = {tasks = {}, payloads = {}, bytes = 0, left = math.min(ask.n, 500), from = {}}
  got.looks = got.left + 100
  local newest = tonumber(redis.call("HGET", key.worker .. ask.worker, "seq") or 0)
  redis.call("ZCARD", key.claims .. ask.worker) -- it must be readable before anything is decided
  index.add(tx, key.workers, string.format("%d", tx.at + ask.lease), ask.worker)
  alarm.note(tx, tx.at + ask.lease)
  if ask.seq <= newest then
    repeated(tx, ask, got)
    return parcels(tx, got)
  end
  later.before(tx, "HSET", key.worker .. ask.worker, "seq", string.format("%d", ask.seq))
  local looked = window(ask)
  for round = 1, 2 do
    for _, i in ipairs(looked) do
      draw(tx, ask, got, ask.queues[i], round == 1 and ask.quotas[i] or got.left)
    end
  end
  tx.asked = {}
  for n, i in ipairs(looked) do
    tx.asked[n] = ask.queues[i]
  end
  return parcels(tx, got)
end
