-- read_queues: returns the sizes of clocks and queues, about 500 queues a call.
--
-- ARGV[1]  cursor: next of the previous reply; absent or 0 at first
--
-- Returns  {now, {"deadlines", n, "delayed", n, …}, next, {queue, "ready", n, "dead", n, name, value, …}, …}
--            name  held,kind or held,kind,programs: how many tasks of a set are held (task/hold.lua); a field of the queue's record
--            next  cursor of the next call; 0: these were the last. A queue can be returned twice, and one that
--                  is made meanwhile can be missing
-- Flags    no-writes
--
-- @use check/values: whole
-- @use queue/queue: held_sets
-- @use store/try: attempt
-- @use store/tx: begin_read
local clocks = {"deadlines", "limits", "delayed", "waits", "workers", "draining", "retained", "broken"}

local function read_queues(keys, argv)
  if not whole(argv[1] or "0") then
    error("argument 1 must be 0, or the cursor of an earlier reply", 0)
  end
  local tx = begin_read(keys[1])
  local key, sizes = tx.key, {}
  for _, clock in ipairs(clocks) do
    sizes[#sizes + 1] = clock
    sizes[#sizes + 1] = redis.call("ZCARD", key[clock])
  end
  local page = redis.call("SSCAN", key.queues, argv[1] or "0", "COUNT", "500")
  local answers, held = {tx.at, sizes, page[1]}, held_sets(tx)
  for _, queue in ipairs(page[2]) do
    local row = {queue, "ready", redis.call("ZCARD", key.ready .. queue), "dead", redis.call("ZCARD", key.dead .. queue)}
    for _, set in ipairs(held[queue] or {}) do
      local n = attempt("ZCARD", key.held .. set)
      row[#row + 1] = "held" .. string.sub(set, #queue + 1)
      row[#row + 1] = type(n) == "number" and n or 0
    end
    for _, word in ipairs(redis.call("HGETALL", key.queue .. queue)) do
      row[#row + 1] = word
    end
    answers[#answers + 1] = row
  end
  return answers
end
