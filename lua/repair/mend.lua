-- Mends what is stored beside the records.
--
-- @use queue/queue: wake
-- @use store/index: index, new_score
-- @use store/later
-- @use store/messages: alarm

-- mend compares what is stored beside the records with what the records say. What is wrong is put right at commit, and
-- added to r, a list of what repair does, in words.
--
--   name  a key without its root: deadlines, ready:mail
local mend = {}

function mend.key(tx, name)
  local kind, of = string.match(name, "^(%l+):?(.*)$")
  return tx.key[kind] .. of, of == ""
end

-- must gives a member of a sorted set its score, or removes it if the score is nil or false.
function mend.must(tx, r, name, member, score)
  local key, clock = mend.key(tx, name)
  local there = tonumber(new_score(tx, key, member))
  if score and there ~= tonumber(score) then
    index.add(tx, key, string.format("%d", score), member)
    r[#r + 1] = "add to " .. name
    if clock then
      alarm.note(tx, tonumber(score))
    end
  elseif there and not score then
    index.remove(tx, key, member)
    r[#r + 1] = "remove from " .. name
  end
end

function mend.has(tx, name, member)
  local key = mend.key(tx, name)
  return new_score(tx, key, member) ~= nil
end

-- drop deletes a key that must not exist.
function mend.drop(tx, r, name)
  local key = mend.key(tx, name)
  if redis.call("EXISTS", key) == 1 then
    later.drop(tx, key)
    index.forget(tx, key)
    r[#r + 1] = "delete " .. name
  end
end

-- repair_worker gives a worker without a lease one of a minute: time for a heartbeat of a worker that lives.
local function repair_worker(tx, r, worker)
  if not mend.has(tx, "workers", worker) then
    mend.must(tx, r, "workers", worker, tx.at + 60000)
  end
end

-- repair_queue lists a queue, and makes its wake token and its place on the clock `throttled` agree with its controls.
local function repair_queue(tx, _, name)
  local r, about, token = {}, tx.key.queue .. name, tx.key.wake .. name
  local paused, rate = unpack(redis.call("HMGET", about, "paused", "rate"))
  if redis.call("EXISTS", about) == 1 and redis.call("SISMEMBER", tx.key.queues, name) == 0 then
    later.before(tx, "SADD", tx.key.queues, name)
    r[#r + 1] = "add to queues"
  end
  if not rate then
    mend.must(tx, r, "throttled", name)
  end
  if redis.call("LLEN", token) > (paused and 0 or 1) then
    later.drop(tx, token)
    wake.note(tx, name)
    r[#r + 1] = "delete wake:" .. name
  end
  return r
end
