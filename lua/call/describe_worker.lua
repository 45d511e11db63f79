-- describe_worker: a worker describes itself, for people to read. The description lasts as long as its lease.
--
-- ARGV[1]  worker
-- ARGV[2]  state   running, or draining: it finishes the tasks that it holds and takes no more
-- ARGV[3]  about   opaque, up to 4096 bytes; the Go client writes a JSON object. Empty: unchanged
--
-- Returns  {"OK"}
--          {"MISSING"}              the worker is not known: send a heartbeat first
--          {"INVALID", field, why}  nothing was changed
-- Flags    allow-oom        a worker must be able to drain on a full Redis
--
-- @use check/values: names
-- @use store/later
-- @use store/tell: answer
-- @use store/tx: begin, read_root
-- @use unit/unit

local states = {running = true, draining = true}

local function describe(tx, worker, state, about)
  if not redis.call("ZSCORE", tx.key.workers, worker) then
    return {"MISSING"}
  end
  local key = tx.key.worker .. worker
  if redis.call("HGET", key, "state") ~= "draining" then -- draining is final
    later.before(tx, "HSET", key, "state", state)
  end
  if about ~= "" then
    later.before(tx, "HSET", key, "about", about)
  end
  return {"OK"}
end

local function describe_worker(keys, argv)
  local worker, state, about = names.word("worker", argv[1]), argv[2], argv[3] or ""
  if not states[state] then
    return {"INVALID", "state", "must be running or draining"}
  elseif #about > 4096 then
    return {"INVALID", "about", "has " .. #about .. " bytes, the limit is 4096"}
  end
  local tx = read_root(begin(keys[1]))
  return answer(tx, unit(tx, describe, worker, state, about))
end
