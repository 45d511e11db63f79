-- rights has the commands that a program runs for what it does: produce, work, reap, read, or all of it. Every
-- call that writes may end what is late, so those that write differ little. Some commands are not of calls but of
-- clients: BLPOP, and those with which a reader looks at keys. docs/security.md has the same.
local writes = "DEL EXISTS HDEL HGET HGETALL HINCRBY HLEN HMGET HSET LLEN LRANGE MGET RPUSH SADD SCARD SET SISMEMBER SMEMBERS " ..
  "TIME UNLINK XADD XLEN ZADD ZCARD ZRANGE ZREM ZSCORE "
local sweeps = "LTRIM ZRANGEBYSCORE ZREVRANGE ZREVRANGEBYSCORE "
local rights = {
  commands = {
    produce = writes .. "GET SSCAN",
    work = writes .. sweeps .. "GET LINDEX",
    reap = writes .. sweeps,
    read = "EXISTS GET HGET HGETALL HMGET HSCAN LLEN LRANGE MGET SISMEMBER SMEMBERS SSCAN TIME TYPE XLEN XRANGE XREVRANGE ZCARD ZCOUNT ZMSCORE " ..
      "ZRANGE ZRANGEBYSCORE ZRANK ZSCAN ZSCORE",
    all = writes .. sweeps .. "GET HSCAN LINDEX SSCAN TYPE XRANGE XREVRANGE ZCOUNT ZMSCORE ZRANK ZSCAN",
  },
}

-- others are the commands whose keys Redis finds by their arguments, each with what needs it.
function rights.others(root)
  return {
    {rule = "+mset", of = "produce work reap all", "MSET", root, "x"},
    {rule = "+zinter", of = "produce work reap all", "ZINTER", "1", root},
    {rule = "+blpop", of = "work all", "BLPOP", root, "1"},
    {rule = "+xinfo|stream", of = "read all", "XINFO", "STREAM", root},
    {rule = "+xread", of = "read all", "XREAD", "STREAMS", root, "0"},
    {rule = "+scan", of = "read all", "SCAN", "0"},
  }
end
