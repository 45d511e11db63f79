-- read_queues: how many tasks are where.
--
-- KEYS[1]  root of the partition
--
-- Returns  {now, {"deadlines", n, "delayed", n, …}, {queue, "ready", n, "dead", n, name, value, …}, …}
-- Flags    no-writes
--
-- @include keys
-- @include now

local k, at = keys(KEYS[1]), now()
local sizes = {}
for _, clock in ipairs({"deadlines", "limits", "delayed", "waits", "workers", "draining", "retained", "broken"}) do
  sizes[#sizes + 1] = clock
  sizes[#sizes + 1] = redis.call("ZCARD", k[clock])
end
local answers = {at, sizes}
local names = redis.call("SMEMBERS", k.queues)
table.sort(names)
for _, queue in ipairs(names) do
  local row = {queue, "ready", redis.call("ZCARD", k.ready .. queue), "dead", redis.call("ZCARD", k.dead .. queue)}
  for _, word in ipairs(redis.call("HGETALL", k.queue .. queue)) do
    row[#row + 1] = word
  end
  answers[#answers + 1] = row
end
return answers
