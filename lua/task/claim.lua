-- claim gives ready tasks to a worker. The first round takes up to its quota from each queue, in the order of the
-- request. The second round takes from the queues in the same order until the worker has all it asked for. A queue
-- gives no more than its controls allow.
--
--   ask  task/read_ask.lua; settle adds carried: the bytes of the outcomes that it reports
--
-- One call gives at most 500 tasks and 4 MiB, and reads at most 256 queues, since Redis does nothing else
-- meanwhile. It gives one task however large that is. For a worker of more queues, later calls read the others.
--
-- Returns the claims, as task/parcels.lua formats them
--
-- @use store/alarm
-- @use store/index
-- @use store/later
-- @use store/record
-- @use task/draw
-- @use task/load_task
-- @use task/parcels
-- @use task/payload
-- @use task/put_aside

local most_queues = 256

-- repeated adds the tasks that an earlier request with the same seq claimed, and that the worker still holds.
local function repeated(tx, ask, got)
  local ids = redis.call("ZRANGEBYSCORE", tx.key.claims .. ask.worker, string.format("%d", ask.seq), string.format("%d", ask.seq))
  record.load(tx, ids)
  for _, id in ipairs(ids) do
    tx.on = id
    local task = load_task(tx, id)
    local held = task and task.status == "RUNNING" and task.worker == ask.worker
    if held and task.payload_bytes then
      got.payloads[id] = payload(tx, task)
      if not got.payloads[id] then
        put_aside(tx, id, "its payload is lost")
        held = false
      end
    end
    if held then
      got.tasks[#got.tasks + 1] = task
    end
  end
end

-- narrow reduces a request to the queues that this call reads.
local function narrow(ask)
  local n = #ask.queues
  local first, queues, quotas = ask.seq * most_queues % n, {}, {}
  for i = 1, most_queues do
    local place = (first + i - 1) % n + 1
    queues[i], quotas[i] = ask.queues[place], ask.quotas[place]
  end
  ask.queues, ask.quotas = queues, quotas
end

local function claim(tx, ask)
  local key = tx.key
  local most = math.min(ask.n, 500)
  local got = {tasks = {}, payloads = {}, bytes = 0, carried = ask.carried or 0, full = false, left = most, from = {}, empty = {}}
  local about = redis.call("HMGET", key.worker .. ask.worker, "seq", "stop_at")
  local newest = tonumber(about[1] or 0)
  index.add(tx, key.workers, string.format("%d", tx.at + ask.lease), ask.worker)
  alarm.note(tx, tx.at + ask.lease)
  if ask.seq <= newest then
    tx.repeated = true
    repeated(tx, ask, got)
    return parcels(got)
  end
  if about[2] then
    most, got.left, tx.stopping = 0, 0, true
  end
  if #ask.queues > most_queues then
    narrow(ask)
  end
  got.share = math.ceil(100 / math.max(#ask.queues, 1))
  got.looks = most + 100 + got.share * #ask.queues
  for round = 1, 2 do
    for i, queue in ipairs(ask.queues) do
      if got.left > 0 and not got.empty[queue] and not got.full then
        draw(tx, ask, got, queue, round == 1 and ask.quotas[i] or got.left)
      end
    end
  end
  tx.on, tx.asked, tx.found_empty = false, ask.queues, got.empty
  if got.tasks[1] then -- a request that got no task can be repeated
    later.before(tx, "HSET", key.worker .. ask.worker, "seq", string.format("%d", ask.seq))
  end
  return parcels(got)
end
