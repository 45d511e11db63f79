-- Repairs of the indexes beside the records.
--
-- @use queue/queue: wake
-- @use store/index: index, new_score
-- @use store/later
-- @use store/messages: alarm

-- mend compares an entry of an index with its record, and corrects it at commit. Each correction adds a description to r, the
-- list that the call returns.
--
--   name  a key without its root: deadlines, ready:mail
local mend = {}

function mend.key(tx, name)
  local kind, of = string.match(name, "^(%l+):?(.*)$")
  return tx.key[kind] .. of, of == ""
end

-- must sets the score of a member in a sorted set, or removes the member if the score is nil or false.
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

-- repair_worker sets a lease of a minute for a worker without one, which leaves a live worker time for a heartbeat.
local function repair_worker(tx, r, worker)
  if not mend.has(tx, "workers", worker) then
    mend.must(tx, r, "workers", worker, tx.at + 60000)
  end
end

-- repair_queue adds a queue to the set of queues, and corrects its wake token and its entry on the clock `throttled` by its
-- controls.
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
