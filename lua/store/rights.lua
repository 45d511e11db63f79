-- Whether the user of Redis may do what a call is about to do, and what the user lacks for a role.

-- refuse raises because the user may not run a command on a key. If the user lacks the command itself, the error names
-- the root, which the user can write (lacking). Otherwise it names the key.
local function refuse(tx, command, key)
  local on = redis.acl_check_cmd(command, tx.key.root) and key or tx.key.root
  error({err = "NOPERM this user may not run " .. command .. " on " .. on .. ": nothing was written"}, 0)
end

local function need(tx, command, key)
  if not redis.acl_check_cmd(command, key) then
    refuse(tx, command, key)
  end
end

-- need_all checks commands, each followed by the name of its key.
local function need_all(tx, list)
  local key, may = tx.key, redis.acl_check_cmd
  for i = 1, #list, 2 do
    if not may(list[i], key[list[i + 1]]) then
      refuse(tx, list[i], key[list[i + 1]])
    end
  end
end

-- need_for_sets checks the keys of all sets with one DEL, then ZADD and ZREM on one set each. If the DEL is refused, it
-- checks each key with its own command, to find what is lacking.
local function need_for_sets(tx, gains, loses)
  if redis.acl_check_cmd("DEL", unpack(tx.sets, 1, math.min(#tx.sets, 4000))) then
    gains, loses = {gains[1]}, {loses[1]}
  end
  for _, key in ipairs(gains) do
    need(tx, "ZADD", key)
  end
  for _, key in ipairs(loses) do
    need(tx, "ZREM", key)
  end
end

-- need_for_later checks the writes of store/later.lua.
local function need_for_later(tx)
  local later = tx.later
  for _, key in ipairs(later.drops) do
    need(tx, "UNLINK", key)
  end
  for _, key in ipairs(later.lists) do
    need(tx, "RPUSH", key)
  end
  for _, commands in ipairs({later.before, later.after}) do
    for _, c in ipairs(commands) do
      for i = 2, c[1] == "DEL" and #c or 2 do
        need(tx, c[1], c[i])
      end
    end
  end
end

-- What the parts of a commit run (need_all).
local for_all = {"MSET", "spec", "MSET", "state", "HSET", "root"}
local for_counts = {"HINCRBY", "queue", "SADD", "queues"}
local for_wakes = {"RPUSH", "wake", "LLEN", "wake"}
local for_recounts = {"ZRANGE", "claims", "ZRANGE", "workers", "SMEMBERS", "queues", "HGET", "queue", "HSET", "queue", "HINCRBY", "recount",
  "HGETALL", "recount", "DEL", "recount", "HSET", "root", "HDEL", "root"}
local for_figures = {"HMGET", "figures", "HSET", "figures", "SISMEMBER", "kinds", "SCARD", "kinds", "HLEN", "figures", "SADD", "kinds",
  "HINCRBY", "figures", "HDEL", "figures"}

-- need_for_counts checks the writes of counters, and of tokens.
local function need_for_counts(tx)
  local queues = tx.queues
  if next(queues.counts) then
    need_all(tx, for_counts)
  end
  if queues.recount or next(queues.wakes) then
    need_all(tx, for_wakes)
  end
end

-- need_for_queues checks what few units do with queues.
local function need_for_queues(tx)
  local queues = tx.queues
  if queues.recount then
    need_all(tx, for_recounts)
  end
  if queues.ask or tx.root.controlled then
    need(tx, "ZCARD", tx.key.ready)
  end
  if queues.ask then
    need(tx, "DEL", tx.key.wake)
  end
end

-- may_all reports whether the user may run what the parts of a unit run, on every key. Most users may, and then the parts need
-- no look of their own. DEL has all keys in one look. So the commands that read what they find have their own keys, and the
-- others any key.
local function may_all(tx)
  local key, may = tx.key, redis.acl_check_cmd
  local root = key.root
  return may("MSET", root) and may("HSET", root) and may("ZADD", root) and may("ZREM", root) and
    (not tx.queues and not tx.figures or may("HINCRBY", key.queue) and may("SADD", root) and may("RPUSH", root) and
      may("LLEN", key.wake)) and
    (not tx.figures or may("HMGET", key.figures) and may("SISMEMBER", key.kinds) and may("SCARD", key.kinds) and
      may("HLEN", key.figures) and may("HDEL", root)) and
    (not tx.events or may("XADD", root)) and
    may("DEL", key.spec, key.state, key.queue, key.queues, key.wake, key.figures, key.kinds, key.events,
      unpack(tx.sets, 1, math.min(#tx.sets, 4000)))
end

-- need_for_parts checks the parts one by one, to find what is lacking.
local function need_for_parts(tx, gains, loses)
  need_all(tx, for_all)
  if tx.sets[1] then
    need_for_sets(tx, gains, loses)
  end
  if tx.queues then
    need_for_counts(tx)
  end
  if tx.figures then
    need_all(tx, for_figures)
  end
  if tx.events then
    need(tx, "XADD", tx.key.events)
  end
end

-- may_write raises, before the first command of a commit, if the user lacks a right that the commit needs: Redis
-- does not take back what is written. It runs no command. Redis before 7.0 cannot check rights.
--
--   gains, loses  as index.prepare returns them
local function may_write(tx, gains, loses)
  if not redis.acl_check_cmd then
    return
  end
  if not may_all(tx) then
    need_for_parts(tx, gains, loses)
  end
  if tx.later then
    need_for_later(tx)
  end
  if tx.waits then
    need(tx, "HSET", tx.key.wait)
    need(tx, "HINCRBY", tx.key.journal)
  end
  if tx.queues and (tx.queues.recount or tx.queues.ask or tx.root.controlled) then
    need_for_queues(tx)
  end
end

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

-- lacking lists the rights that a program needs for its role and that the user lacks, as words of ACL SETUSER:
-- +command, ~keys, &channels. It runs no command, and needs no right itself. Redis before 7.0 cannot check rights.
--
-- The user can read and write the root, or this call would not run. So a command that is refused on the root is not
-- allowed at all, and a command that is allowed there can be used to check other keys.
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
