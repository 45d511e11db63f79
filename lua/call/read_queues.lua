-- read_queues: how many tasks are where.
--
-- Returns  {now, {"deadlines", n, "delayed", n, …}, {queue, "ready", n, "dead", n, name, value, …}, …}
-- Flags    no-writes
--
-- @use store/begin
local clocks = {"deadlines", "limits", "delayed", "waits", "workers", "draining", "retained", "broken"}

local function read_queues(keys)
  local tx = begin(keys[1])
  local key, sizes = tx.key, {}
  for _, clock in ipairs(clocks) do
    sizes[#sizes + 1] = clock
    sizes[#sizes + 1] = redis.call("ZCARD", key[clock])
  end
  local answers = {tx.at, sizes}
  local names = redis.call("SMEMBERS", key.queues)
  table.sort(names)
  for _, queue in ipairs(names) do
    local row = {queue, "ready", redis.call("ZCARD", key.ready .. queue), "dead", redis.call("ZCARD", key.dead .. queue)}
    for _, word in ipairs(redis.call("HGETALL", key.queue .. queue)) do
      row[#row + 1] = word
    end
    answers[#answers + 1] = row
  end
  return answers
end
