-- may_write raises, before the first command of a commit, if the user lacks a right that the commit needs: Redis
-- does not take back what is written. It runs no command. Redis before 7.0 cannot check rights.
local function need(command, ...)
  if not redis.acl_check_cmd(command, ...) then
    error({err = "NOPERM this user may not run " .. command .. " on " .. (...) .. ": nothing was written"}, 0)
  end
end

-- need_for_sets checks ZADD and ZREM on one set each, and the keys of all sets and records.
local function need_for_sets(tx)
  local gains, loses, words, n = nil, nil, {tx.key.spec, "x", tx.key.state, "x"}, 4
  for _, set in ipairs(tx.sets) do
    gains = set.news > 0 and set.key or gains
    loses = set.gone and set.key or loses
    words[n + 1], words[n + 2] = set.key, "x"
    n = n + 2
  end
  need("MSET", unpack(words, 1, math.min(n, 4000)))
  if gains then
    need("ZADD", gains, "1", "x")
  end
  if loses then
    need("ZREM", loses, "x")
  end
end

-- need_for_later checks the writes of store/later.lua.
local function need_for_later(tx)
  for _, key in ipairs(tx.drops) do
    need("UNLINK", key)
  end
  for _, key in ipairs(tx.lists) do
    need("RPUSH", key, "x")
  end
  for _, commands in ipairs({tx.before, tx.after}) do
    for _, c in ipairs(commands) do
      if c[1] == "DEL" then
        need(unpack(c))
      else
        need(c[1], c[2], "1", "1")
      end
    end
  end
end

-- need_for_queues checks the writes of counters, and of tokens.
local function need_for_queues(tx)
  local key, counts = tx.key, next(tx.counts)
  if counts then
    need("HINCRBY", key.queue, "x", "1")
    if tx.counts[counts].enqueued then
      need("SADD", key.queues, "x")
    end
  end
  if tx.recount then
    for _, c in ipairs({{"ZRANGE", key.claims, "0", "1"}, {"ZRANGE", key.workers, "0", "1"}, {"SMEMBERS", key.queues},
      {"HGET", key.queue, "x"}, {"HSET", key.queue, "x", "x"}, {"HINCRBY", key.recount, "x", "1"}, {"HGETALL", key.recount},
      {"DEL", key.recount}, {"HSET", key.root, "x", "x"}, {"HDEL", key.root, "x"}}) do
      need(unpack(c))
    end
  end
  if tx.recount or next(tx.wakes) then
    need("RPUSH", key.wake, "x")
    need("LLEN", key.wake)
  end
end

local function may_write(tx)
  if not redis.acl_check_cmd then
    return
  end
  need_for_sets(tx)
  need_for_later(tx)
  if next(tx.waits) or next(tx.journals) then
    need("HSET", tx.key.wait, "x", "x")
    need("HINCRBY", tx.key.journal, "x", "1")
  end
  need_for_queues(tx)
  if tx.earliest or tx.seq or tx.front or tx.events[1] then
    need("HSET", tx.key.root, "x", "x")
  end
  if tx.figures ~= tx.none then
    need("HSET", tx.key.figures, "x", "x")
    need("SADD", tx.key.kinds, "x")
  end
  if tx.events[1] then
    need("XADD", tx.key.events, "*", "x", "x")
  end
end
