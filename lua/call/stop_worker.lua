-- stop_worker: a client requests a worker to drain: to take no more tasks, finish those that it holds, and end. The
-- worker gets a message on its channel at once. Its next fetch for new tasks, or heartbeat, repeats the request.
--
-- ARGV[1]  worker
--
-- Returns  {"OK", state}  the request is stored, by this call or an earlier one. state is the worker's own
--                         description of its state, "" if it has none
--          {"MISSING"}    there is no such worker
-- Flags    allow-oom        a worker must stop on a full Redis too
--
-- @use check/values: names
-- @use store/later
-- @use store/messages: publish
-- @use store/tell: answer
-- @use store/tx: begin, read_root
-- @use unit/unit

local function ask(tx, worker)
  if not redis.call("ZSCORE", tx.key.workers, worker) then
    return {"MISSING"}
  end
  local about = redis.call("HMGET", tx.key.worker .. worker, "state", "stop_at")
  if not about[2] then
    later.before(tx, "HSET", tx.key.worker .. worker, "stop_at", tx.now)
  end
  publish.stop(tx, {worker = worker, id = "-", epoch = "0"}, "stop")
  return {"OK", about[1] or ""}
end

local function stop_worker(keys, argv)
  local worker = names.word("worker", argv[1])
  local tx = read_root(begin(keys[1]))
  return answer(tx, unit(tx, ask, worker))
end
