-- explain: why a task is where it is. Its record, how it ends if that is decided and not
-- written yet, its line, its worker, and if it waits, its wait and those of its members
-- that have not ended. It changes nothing.
--
-- KEYS[1]  root of the partition
-- ARGV[1]  id
-- ARGV[2]  where to go on with the members, as the last one said; "" for the first call
-- ARGV[3]  how many members to tell of, up to 500
--
-- A key of the wrong type in its way is taken for one that is not there: whoever asks why
-- something stands still needs an answer most when something is broken.
--
-- Returns  {now, record, over, facts, queue, wait, member, …}, each of them a list of name
--          and value; empty lists where there is nothing, and for all but wait and members
--          if this is not the first call
--            over    status, reason, timeout_type, error, completed_at of the end that is decided
--            facts   unreadable: why its record cannot be worked with; broken: since when that
--                    is known; doomed_by, doomed_at: the ancestor whose end ends it;
--                    attempt_over: when its attempt was out of time; ahead, lined: its place in
--                    line; workers: how many live; lease: until when its own does; goes: when
--                    its record does; turn_until: a reaper is at work until then; lags: how
--                    many ms late each timeout was written, of those among the newest 200 events
--            member  place, name, mask, patience, over_at, broken, and fields of its record
-- Flags    no-writes
--
-- @include keys
-- @include now
-- @include live
-- @include owner
-- @include drains
-- @include record
-- @include ending
-- @include attempted

local k, at = keys(KEYS[1]), now()
local id, from, most = ARGV[1], ARGV[2], tonumber(ARGV[3])
if not most or most < 1 or most > 500 then
  error("explain: " .. tostring(ARGV[3]) .. " is no count of members, 500 at the most", 0)
end

-- ask reads, and has false for a key of the wrong type.
local function ask(...)
  local answer = redis.pcall(...)
  if type(answer) == "table" and answer.err then
    return false
  end
  return answer
end

-- scored is an instant that something has in a clock; servers differ in how they write one.
local function scored(key, member)
  local score = tonumber(ask("ZSCORE", key, member) or nil)
  return score and string.format("%d", score)
end

-- put adds a name and what is known of it to a list.
local function put(list, name, value)
  if value then
    list[#list + 1] = name
    list[#list + 1] = value
  end
end

-- fields adds some fields of a hash to a list. It returns them by their names.
local function fields(list, key, names)
  local values, found = ask("HMGET", key, unpack(names)) or {}, {}
  for i, name in ipairs(names) do
    found[name] = values[i] or nil
    put(list, name, found[name])
  end
  return found
end

-- decided tells how a task ends, if its time is up, or why that cannot be told.
local function decided(task)
  local ok, over = pcall(ending, k, task, at)
  if ok then
    return over
  end
  return nil, type(over) == "table" and over.err or tostring(over)
end

-- doomed tells whose end ends a task: the first that ended, of equal ones the outermost.
local function doomed(facts)
  local first, by
  local up = owner(id)
  while up do
    local ended = drains(k, up)
    if ended and not (first and first < ended) then
      first, by = ended, up
    end
    up = owner(up)
  end
  put(facts, "doomed_by", by)
  put(facts, "doomed_at", first and string.format("%d", first))
end

-- lags is how late timeouts were written, as far as the newest events tell, with spaces
-- between them; nil if they tell of none.
local function lags()
  local found = {}
  for _, event in ipairs(ask("XREVRANGE", k.events, "+", "-", "COUNT", 200) or {}) do
    local values = event[2]
    for i = 1, #values - 1, 2 do
      if values[i] == "lag_ms" then
        found[#found + 1] = values[i + 1]
      end
    end
  end
  return found[1] and table.concat(found, " ")
end

-- surroundings is what stands around a live task.
local function surroundings(task, facts, queue)
  doomed(facts)
  if task.limit_at and (tonumber(task.limit_at) or at) < at and attempted(task) then
    put(facts, "attempt_over", task.limit_at)
  end
  put(facts, "lags", lags())
  put(facts, "turn_until", fields({}, k.root, {"turn_until"}).turn_until)
  put(facts, "workers", ask("ZCOUNT", k.workers, string.format("%d", at), "+inf"))
  if task.status == "RUNNING" and task.worker then
    put(facts, "lease", scored(k.workers, task.worker))
  elseif task.status == "PENDING" and not task.role and not task.available_at and task.queue then
    put(facts, "ahead", ask("ZRANK", k.ready .. task.queue, id))
    put(facts, "lined", ask("ZCARD", k.ready .. task.queue))
    fields(queue, k.queue .. task.queue, {"paused", "running", "max_running", "rate", "per_ms", "burst", "full_at"})
  end
end

-- due tells whether one of a member's instants is over, so that its end may be decided.
local function due(m)
  for _, name in ipairs({"deadline_at", "until", "limit_at", "grace_at", "available_at"}) do
    if m[name] and (tonumber(m[name]) or at) <= at then
      return true
    end
  end
end

-- awaited adds the wait of an agent and its next members to the answers.
local function awaited(answers, wait)
  fields(wait, k.wait .. id, {"state", "entry", "mode", "label", "ok", "bad", "settled", "size", "need_ok", "most_bad",
    "all", "wait_deadline_at", "limit_ms", "since", "reason", from == "" and "members" or "reason"})
  put(wait, "pending", ask("ZCARD", k.pending .. id))
  local some = ask("ZRANGEBYSCORE", k.pending .. id, from == "" and "-inf" or "(" .. from, "+inf", "WITHSCORES", "LIMIT", 0, most) or {}
  local own = {"mask"}
  for i = 1, #some, 2 do
    own[#own + 1] = "mask " .. some[i]
  end
  local masks = ask("HMGET", k.wait .. id, unpack(own)) or {}
  local impatient = ask("EXISTS", k.patience .. id) == 1
  local broken = (ask("ZCARD", k.broken) or 0) > 0
  for i = 1, #some, 2 do
    local name = some[i]
    local key = id .. "." .. name
    local member = {"place", string.format("%d", tonumber(some[i + 1])), "name", name}
    put(member, "mask", masks[(i + 3) / 2] or masks[1])
    put(member, "patience", impatient and scored(k.patience .. id, name))
    put(member, "broken", broken and scored(k.broken, key))
    local m = fields(member, k.task .. key, {"deadline_at", "until", "limit_at", "available_at", "role",
      "grace_at", "cancel_grace_ms", "status"})
    if live(m) and due(m) then
      local over, why = decided(record(k, key))
      put(member, "over_at", over and string.format("%d", over.completed_at))
      put(member, "broken", why)
    end
    answers[#answers + 1] = member
  end
end

local told, over, facts, queue, wait = {}, {}, {}, {}, {}
local answers = {at, told, over, facts, queue, wait}
local status
if from == "" then
  local flat = redis.pcall("HGETALL", k.task .. id)
  put(facts, "unreadable", flat.err)
  put(facts, "broken", scored(k.broken, id))
  local task = {id = id, status = false}
  for i = 1, #flat, 2 do
    task[flat[i]] = flat[i + 1]
    told[i], told[i + 1] = flat[i], flat[i + 1]
  end
  if live(task) then
    surroundings(task, facts, queue)
    local ends, why = decided(task)
    put(facts, "unreadable", why)
    for _, name in ipairs({"reason", "timeout_type", "error", "status"}) do
      put(over, name, ends and ends[name])
    end
    put(over, "completed_at", ends and string.format("%d", ends.completed_at))
  else
    put(facts, "goes", scored(k.retained, id))
    local parent = owner(id)
    put(facts, "owner", parent and fields({}, k.task .. parent, {"status"}).status)
  end
  status = task.status
else
  status = fields({}, k.task .. id, {"status"}).status
end
if status == "WAITING" then
  awaited(answers, wait)
end
return answers
