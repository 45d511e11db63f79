-- The least that a queue does for tasks with a payload: a key for each payload, and the
-- ids in a line or among those that run. Two jobs in one script:
--
-- KEYS[1]  prefix of all keys
-- ARGV[1]  "put": the rest are pairs, a number and a payload, which are stored
--          "work": ARGV[2] is how many tasks to take; the rest are ids that are done and go
--
-- Returns  of "work": ids and payloads of what was taken
local line, running, prefix = KEYS[1] .. ":line", KEYS[1] .. ":running", KEYS[1] .. ":"
local bell = KEYS[1] .. ":bell" -- a worker without work waits on this list

if ARGV[1] == "put" then
  local payloads, ids = {}, {}
  for i = 2, #ARGV, 2 do
    payloads[i - 1], payloads[i] = prefix .. ARGV[i], ARGV[i + 1]
    ids[i - 1], ids[i] = ARGV[i], ARGV[i]
  end
  redis.call("MSET", unpack(payloads))
  redis.call("ZADD", line, unpack(ids))
  if redis.call("EXISTS", bell) == 0 then
    redis.call("RPUSH", bell, 1)
  end
  return 0
end

if #ARGV > 2 then
  local keys = {}
  for i = 3, #ARGV do
    keys[i - 2] = prefix .. ARGV[i]
  end
  redis.call("ZREM", running, unpack(ARGV, 3))
  redis.call("DEL", unpack(keys))
end
local taken = redis.call("ZPOPMIN", line, ARGV[2])
if #taken == 0 then
  return {}
end
local ids, keys, moves = {}, {}, {}
for i = 1, #taken, 2 do
  ids[#ids + 1], keys[#keys + 1] = taken[i], prefix .. taken[i]
  moves[i], moves[i + 1] = taken[i + 1], taken[i]
end
redis.call("ZADD", running, unpack(moves))
return {ids, redis.call("MGET", unpack(keys))}
