-- The least work of a queue for entries that are out of time: take them off a list by instant.
--
-- KEYS[1]  the list: deadlines of tasks, or leases
-- ARGV[1]  now, in ms
-- ARGV[2]  how many at the most
--
-- Returns  the entries that were taken, each with its instant
local due = redis.call("ZRANGEBYSCORE", KEYS[1], "-inf", "(" .. ARGV[1], "WITHSCORES", "LIMIT", 0, ARGV[2])
for i = 1, #due, 2 do
  redis.call("ZREM", KEYS[1], due[i])
end
return due
