-- heartbeat: a worker says that it lives and what it holds.
--
-- ARGV[1]  worker
-- ARGV[2]  ms of lease from now; 0 is goodbye: what it holds is given back, 500 tasks a call
-- ARGV[3]  known: all its fetches up to this seq were answered or given up, so a claim of theirs that it
--          does not name was never received, or dropped
-- ARGV[4…] id, epoch, progress, …: what it is working on, and what its handler says of how far it is, of
--          which 1024 bytes are kept; empty: nothing new
--
-- Returns  {now, left, {id, epoch, reason}, …}: which attempts must stop. reason is gone, lost, released,
--            timeout, cancelled, or how else the task ended; cancelling: it is to stop, and keeps its claim
--            for a while. {"-", "0", "stop"}: the worker itself is asked to stop. left is how many tasks are held after a goodbye: say it again until that is 0
-- Ends     FAILED, what is late among them
-- Flags    allow-oom        a full Redis must still drain
--
-- @use check/names
-- @use check/whole
-- @use store/alarm
-- @use store/answer
-- @use store/begin
-- @use store/index
-- @use store/later
-- @use store/read_root
-- @use store/record
-- @use store/unit
-- @use task/give_back
-- @use task/must_stop

-- drop gives claims back. The newest goes first, so the oldest ends up in front.
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
  redis.call("ZCARD", key.workers) -- both must be readable before anything is decided
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
  if not leaves and redis.call("HGET", key.worker .. b.worker, "stop") then
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
    error("arguments 2 and 3 must be whole numbers: ms of lease, and the newest fetch that was answered", 0)
  elseif #argv % 3 ~= 0 then
    error("argument " .. #argv .. " is not the last of id, epoch and progress: give all three", 0)
  end
  for i = 4, #argv, 3 do
    local n = #b.ids + 1
    b.ids[n], b.epochs[n], b.progress[n] = argv[i], argv[i + 1], string.sub(argv[i + 2], 1, 1024)
  end
  local tx = read_root(begin(keys[1]))
  return answer(tx, unit(tx, beat, b))
end
