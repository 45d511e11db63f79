-- heartbeat: a worker renews its lease and reports the claims that it works on.
--
-- ARGV[1]  worker
-- ARGV[2]  ms of lease from now; 0 is a goodbye: its claims are given back, 500 tasks a call
-- ARGV[3]  known: every fetch up to this seq was answered or given up. Claims of these fetches that the
--          heartbeat does not list are given back
-- ARGV[4…] id, epoch, progress, …: the claims that it works on, and the progress of each handler. 1024 bytes of
--          progress are kept; empty: nothing new
--
-- Returns  {now, left, {id, epoch, reason}, …}: the attempts that must stop. reason is gone, lost, released,
--            timeout, cancelled, or the final status of the task, in small letters. cancelling: the handler must stop,
--            and the claim stays valid until its grace is over. {"-", "0", "stop"}: the worker itself must stop.
--            left is the number of claims that remain after a goodbye: repeat the goodbye until left is 0
-- Ends     listed tasks that must end: FAILED if their time was up, else CANCELLED
-- Flags    allow-oom        a full Redis must still drain
--
-- @use check/values: names, whole
-- @use store/index
-- @use store/later
-- @use store/messages: alarm
-- @use store/record
-- @use store/tell: answer
-- @use store/tx: begin, read_root
-- @use task/claim: give_back
-- @use task/report: must_stop
-- @use unit/unit

-- drop gives claims back, the newest first, and the claims of the same fetch by their ids. Each goes to the front of its
-- line, so that the oldest is claimed first again.
local function drop(tx, worker, ids, held)
  record.load(tx, ids)
  for _, id in ipairs(ids) do
    if not held[id] then
      give_back(tx, id, worker, false)
    end
  end
end

local function beat(tx, b)
  local key, claims = tx.key, tx.key.claims .. b.worker
  local leaves = b.lease == 0
  redis.call("ZCARD", key.workers) -- raises an error before any decision if a key has the wrong type
  local lost = redis.call("ZREVRANGEBYSCORE", claims, leaves and "+inf" or string.format("%d", b.known), "-inf", "LIMIT", 0,
    leaves and 500 or 500 + #b.ids)
  local left = leaves and redis.call("ZCARD", claims) - #lost or 0
  local stops, held = {tx.at, left}, {}
  record.load(tx, b.ids)
  for n, id in ipairs(b.ids) do
    tx.on, held[id] = id, not leaves
    local reason = must_stop(tx, id, b.epochs[n], b.progress[n], b.worker)
    if reason then
      stops[#stops + 1] = {id, b.epochs[n], reason}
    end
  end
  drop(tx, b.worker, lost, held)
  tx.on = nil
  if not leaves and redis.call("HGET", key.worker .. b.worker, "stop_at") then
    stops[#stops + 1] = {"-", "0", "stop"}
  end
  if not leaves then
    index.add(tx, key.workers, string.format("%d", tx.at + b.lease), b.worker)
    alarm.note(tx, tx.at + b.lease)
  elseif left == 0 then
    index.remove(tx, key.workers, b.worker)
    later.after(tx, "DEL", claims, key.worker .. b.worker)
  end
  return stops
end

local function heartbeat(keys, argv)
  local b = {worker = names.word("worker", argv[1]), lease = whole(argv[2], 0, 4503599627370496), known = whole(argv[3]),
    ids = {}, epochs = {}, progress = {}}
  if not b.lease or not b.known then
    error("arguments 2 and 3 must be whole numbers: ms of lease, and seq of the newest answered fetch", 0)
  elseif #argv % 3 ~= 0 then
    error("argument " .. #argv .. " ends an incomplete claim: give id, epoch and progress of each", 0)
  end
  for i = 4, #argv, 3 do
    local n = #b.ids + 1
    b.ids[n], b.epochs[n], b.progress[n] = argv[i], argv[i + 1], string.sub(argv[i + 2], 1, 1024)
  end
  local tx = read_root(begin(keys[1]))
  return answer(tx, unit(tx, beat, b))
end
