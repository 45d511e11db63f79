-- The unit that the cost of a call is told in: a loop of fixed commands and some work in
-- Lua, as a script of a queue has them. It must never change, or old limits mean nothing.
--
-- KEYS[1]  prefix of all keys       ARGV[1]  a payload       ARGV[2]  how many loops
local line, prefix, sum = KEYS[1] .. ":line", KEYS[1] .. ":", 0
for i = 1, tonumber(ARGV[2]) do
  local key = prefix .. i
  redis.call("SET", key .. ":payload", ARGV[1])
  redis.call("HSET", key, "status", "PENDING", "epoch", i, "queue", "default", "kind", "noop")
  redis.call("ZADD", line, i, key)
  local fields = redis.call("HMGET", key, "status", "epoch", "queue", "kind")
  local word, rest = string.match(table.concat(fields, " "), "^(%S+) (.*)$")
  sum = sum + #word + #rest + #redis.call("GET", key .. ":payload")
  redis.call("ZREM", line, key)
end
return sum
