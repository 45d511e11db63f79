-- rights lists the commands that a program runs in each role: produce, work, reap, read, or all. Every call that
-- writes can end tasks that are late, so the roles that write differ little. Some commands are run by clients and not
-- by calls: BLPOP, and those with which a reader reads keys. docs/how-to/security.md has the same lists.
local writes = "DEL EXISTS HDEL HGET HGETALL HINCRBY HLEN HMGET HSET LLEN LRANGE LTRIM MGET RPUSH SADD SCARD SET SISMEMBER SMEMBERS " ..
  "TIME UNLINK XADD XLEN ZADD ZCARD ZRANGE ZRANGEBYSCORE ZREM ZSCORE "
local sweeps = "ZREVRANGE ZREVRANGEBYSCORE "
local rights = {
  commands = {
    produce = writes .. "GET SSCAN",
    work = writes .. sweeps .. "GET LINDEX",
    reap = writes .. sweeps,
    read = "EXISTS GET GETRANGE HGET HGETALL HMGET HSCAN LLEN LRANGE MGET SISMEMBER SMEMBERS SSCAN TIME TYPE XLEN XRANGE XREVRANGE ZCARD ZCOUNT ZMSCORE " ..
      "ZRANGE ZRANGEBYSCORE ZRANK ZSCAN ZSCORE",
    all = writes .. sweeps .. "GET GETRANGE HSCAN LINDEX SSCAN TYPE XRANGE XREVRANGE ZCOUNT ZMSCORE ZRANK ZSCAN",
  },
}

-- others returns the commands whose keys depend on their arguments, each with the roles that need it.
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
