-- lacking lists the rights that a program needs for its role and that the user lacks, as words of ACL SETUSER:
-- +command, ~keys, &channels. It runs no command, and needs no right itself. Redis before 7.0 cannot check rights.
--
-- The user can read and write the root, or this call would not run. So a command that is refused on the root is not
-- allowed at all, and a command that is allowed there can be used to check other keys.

local writes = "DEL EXISTS HDEL HGET HGETALL HINCRBY HLEN HMGET HSET LLEN LRANGE LTRIM MGET RPUSH SADD SCARD SET SISMEMBER SMEMBERS " ..
  "TIME UNLINK XADD XLEN ZADD ZCARD ZRANGE ZRANGEBYSCORE ZREM ZSCORE "
local sweeps = "ZREVRANGE ZREVRANGEBYSCORE "
-- rights lists the commands that a program runs in each role: produce, work, reap, read, or all. Every call that
-- writes can end tasks that are late, so the roles that write differ little. Some commands are run by clients and not
-- by calls: BLPOP, and those with which a reader reads keys. docs/how-to/security.md has the same lists.
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

local channels = {"alarm", "ended", "stop"} -- in store/keys

local function may(...)
  return redis.acl_check_cmd(...)
end

-- pattern turns a name of store/keys into the pattern of an ACL rule, and one into an example key.
local function pattern(name)
  return string.sub(name, -1) == ":" and name .. "*" or name
end

local function one(name)
  return string.sub(name, -1) == ":" and name .. "x" or name
end

local function lacking_commands(key, access, words)
  for command in string.gmatch(rights.commands[access], "%S+") do
    if not may(command, key.root) then
      words[#words + 1] = "+" .. string.lower(command)
    end
  end
  for _, right in ipairs(rights.others(key.root)) do
    if string.find(right.of, access, 1, true) and not may(unpack(right)) then
      words[#words + 1] = right.rule
    end
  end
end

-- lacking_keys checks every key with one command. If the user lacks that command, lacking_keys checks no keys.
local function lacking_keys(key, access, words)
  local is_channel = {}
  for _, name in ipairs(channels) do
    is_channel[name] = true
  end
  local command = access == "read" and "HMGET" or "HINCRBY"
  if not may(command, key.root, "x", "1") then
    return
  end
  for name, of in pairs(key) do
    if not is_channel[name] and name ~= "partition" and not may(command, one(of), "x", "1") then
      words[#words + 1] = "~" .. pattern(of)
    end
  end
end

-- lacking_channels reports a command as missing if it is refused on every channel. If both commands are, perhaps only
-- the channels are missing: Redis does not say which.
local function lacking_channels(key, words)
  local refused = {publish = {}, subscribe = {}}
  for _, name in ipairs(channels) do
    local channel = one(key[name])
    if not may("PUBLISH", channel, "x") then
      table.insert(refused.publish, "&" .. pattern(key[name]))
    end
    if not may("SUBSCRIBE", channel) then
      table.insert(refused.subscribe, "&" .. pattern(key[name]))
    end
  end
  local fewer = #refused.publish < #refused.subscribe and "publish" or "subscribe"
  for command, rules in pairs(refused) do
    if #rules == #channels then
      words[#words + 1] = "+" .. command
    end
  end
  for _, rule in ipairs(refused[fewer]) do
    words[#words + 1] = rule
  end
end

local function lacking(key, access)
  local words = {}
  if redis.acl_check_cmd then
    lacking_commands(key, access, words)
    lacking_keys(key, access, words)
    if access ~= "read" then
      lacking_channels(key, words)
    end
    table.sort(words)
  end
  return words
end
