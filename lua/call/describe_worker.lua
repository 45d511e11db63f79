-- describe_worker: a worker describes itself. The description lasts as long as its lease. It decides which held tasks the worker
-- gets (task/hold.lua).
--
-- ARGV[1]  worker
-- ARGV[2]  state   running, or draining: it finishes the tasks that it holds and takes no more
-- ARGV[3]  about   a JSON object of up to 4096 bytes. Empty: unchanged. Most of it is for people. Three of its fields say what the
--                  worker can run: kinds; queues (an object with their names) or strict (a list); program, a word that differs
--                  between programs whose code differs. A worker that names no kinds, or no queues, may serve any
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
-- @use task/hold: call_for, read_worker
-- @use unit/unit

local states = {running = true, draining = true}

-- words returns the names in a list, or the names of the fields of an object, with a space before and after each.
local function words(value, of_fields)
  local found = {}
  for name, item in pairs(type(value) == "table" and value or {}) do
    found[#found + 1] = of_fields and name or item
    if type(found[#found]) ~= "string" then
      return ""
    end
  end
  table.sort(found)
  return found[1] and " " .. table.concat(found, " ") .. " " or ""
end

local function describe(tx, worker, state, about)
  if not redis.call("ZSCORE", tx.key.workers, worker) then
    return {"MISSING"}
  end
  local key = tx.key.worker .. worker
  local known = read_worker(tx, worker)
  if known.state ~= "draining" then -- draining is final
    later.before(tx, "HSET", key, "state", state)
  end
  if about ~= "" then
    later.before(tx, "HSET", key, "about", about)
    local ok, fields = pcall(cjson.decode, about)
    fields = ok and type(fields) == "table" and fields or {}
    known.kinds, known.queues = words(fields.kinds), words(fields.queues, true)
    known.queues = known.queues == "" and words(fields.strict) or known.queues
    known.program = type(fields.program) == "string" and string.match(string.sub(fields.program, 1, 64), "^[%w._-]+$") or "-"
    for _, name in ipairs({"kinds", "queues", "program"}) do
      if known[name] ~= "" then
        later.before(tx, "HSET", key, name, known[name])
      else
        later.before(tx, "HDEL", key, name)
      end
    end
  end
  if state == "running" then
    call_for(tx, known)
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
