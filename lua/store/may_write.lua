-- may_write raises, before the first command of a commit, if the user lacks a right that the commit needs: Redis
-- does not take back what is written. It runs no command. Redis before 7.0 cannot check rights.

-- need raises if the user may not run a command on a key. If the user lacks the command itself, the error names the
-- root, which the user can write (store/lacking.lua). Otherwise it names the key.
local function need(tx, command, key, ...)
  if not redis.acl_check_cmd(command, key, ...) then
    local on = redis.acl_check_cmd(command, tx.key.root, ...) and key or tx.key.root
    error({err = "NOPERM this user may not run " .. command .. " on " .. on .. ": nothing was written"}, 0)
  end
end

local function need_for_set(tx, gains, loses)
  if gains then
    need(tx, "ZADD", gains, "1", "x")
  end
  if loses then
    need(tx, "ZREM", loses, "x")
  end
end

-- need_for_sets checks the keys of all records and sets with one MSET, then ZADD and ZREM on one set each. If the MSET
-- is refused, it checks each key with its own command, to find what is lacking.
local function need_for_sets(tx)
  local key, gains, loses = tx.key, nil, nil
  local words, n = {key.spec, "x", key.state, "x"}, 4
  for _, set in ipairs(tx.sets) do
    gains = set.news > 0 and set.key or gains
    loses = set.gone and set.key or loses
    words[n + 1], words[n + 2] = set.key, "x"
    n = n + 2
  end
  if not redis.acl_check_cmd("MSET", unpack(words, 1, math.min(n, 4000))) then
    need(tx, "MSET", key.spec, "x")
    need(tx, "MSET", key.state, "x")
    for _, set in ipairs(tx.sets) do
      need_for_set(tx, set.news > 0 and set.key, set.gone and set.key)
    end
  end
  need_for_set(tx, gains, loses)
end

-- need_for_later checks the writes of store/later.lua.
local function need_for_later(tx)
  for _, key in ipairs(tx.drops) do
    need(tx, "UNLINK", key)
  end
  for _, key in ipairs(tx.lists) do
    need(tx, "RPUSH", key, "x")
  end
  for _, commands in ipairs({tx.before, tx.after}) do
    for _, c in ipairs(commands) do
      if c[1] == "DEL" then
        for i = 2, #c do
          need(tx, "DEL", c[i])
        end
      else
        need(tx, c[1], c[2], "1", "1")
      end
    end
  end
end

-- need_for_queues checks the writes of counters, and of tokens.
local function need_for_queues(tx)
  local key, counts = tx.key, next(tx.counts)
  if counts then
    need(tx, "HINCRBY", key.queue, "x", "1")
    if tx.counts[counts].enqueued then
      need(tx, "SADD", key.queues, "x")
    end
  end
  if tx.recount then
    for _, c in ipairs({{"ZRANGE", key.claims, "0", "1"}, {"ZRANGE", key.workers, "0", "1"}, {"SMEMBERS", key.queues},
      {"HGET", key.queue, "x"}, {"HSET", key.queue, "x", "x"}, {"HINCRBY", key.recount, "x", "1"}, {"HGETALL", key.recount},
      {"DEL", key.recount}, {"HSET", key.root, "x", "x"}, {"HDEL", key.root, "x"}}) do
      need(tx, unpack(c))
    end
  end
  if tx.recount or next(tx.wakes) then
    need(tx, "RPUSH", key.wake, "x")
    need(tx, "LLEN", key.wake)
  end
  if tx.asked or tx.root.controlled then
    need(tx, "ZCARD", key.ready)
  end
  if tx.asked then
    need(tx, "DEL", key.wake)
  end
end

local function may_write(tx)
  if not redis.acl_check_cmd then
    return
  end
  need_for_sets(tx)
  need_for_later(tx)
  if next(tx.waits) or next(tx.journals) then
    need(tx, "HSET", tx.key.wait, "x", "x")
    need(tx, "HINCRBY", tx.key.journal, "x", "1")
  end
  need_for_queues(tx)
  if tx.earliest or tx.seq or tx.front or tx.number or tx.events[1] then
    need(tx, "HSET", tx.key.root, "x", "x")
  end
  if tx.figures ~= tx.none or tx.tallies ~= tx.none then
    for _, c in ipairs({{"HMGET", tx.key.figures, "x"}, {"HSET", tx.key.figures, "x", "x"}, {"SISMEMBER", tx.key.kinds, "x"},
      {"SCARD", tx.key.kinds}, {"HLEN", tx.key.figures}, {"SADD", tx.key.kinds, "x"}, {"HINCRBY", tx.key.figures, "x", "1"}, {"HDEL", tx.key.figures, "x"}}) do
      need(tx, unpack(c))
    end
  end
  if tx.events[1] then
    need(tx, "XADD", tx.key.events, "*", "x", "x")
  end
end
