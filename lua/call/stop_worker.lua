-- stop_worker: somebody asks a worker to drain: to take nothing more, to finish what it has, and to end. It is told at
-- once by its channel, and by its next fetch or heartbeat in any case.
--
-- ARGV[1]  worker
--
-- Returns  {"OK", state}  it is asked; also when it was before. state is what it says of itself, "" if nothing
--          {"MISSING"}    no such worker lives
-- Flags    allow-oom        a worker must stop on a full Redis too
--
-- @use check/names
-- @use store/answer
-- @use store/begin
-- @use store/later
-- @use store/publish
-- @use store/read_root
-- @use store/unit

local function ask(tx, worker)
  if not redis.call("ZSCORE", tx.key.workers, worker) then
    return {"MISSING"}
  end
  local about = redis.call("HMGET", tx.key.worker .. worker, "state", "stop")
  if not about[2] then
    later.before(tx, "HSET", tx.key.worker .. worker, "stop", tx.now)
  end
  publish.stop(tx, {worker = worker, id = "-", epoch = "0"}, "stop")
  return {"OK", about[1] or ""}
end

local function stop_worker(keys, argv)
  local worker = names.word("worker", argv[1])
  local tx = read_root(begin(keys[1]))
  return answer(tx, unit(tx, ask, worker))
end
