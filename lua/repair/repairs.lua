-- repairs has a function for each thing that can be repaired (call/repair.lua lists them). Each takes s, what belongs to the
-- whole call, the subject, and where; and returns what it does, or nil and why it can do nothing.
--
-- @use check/values: digits
-- @use queue/controls: controlled
-- @use queue/queue: count
-- @use repair/mend: mend, repair_queue, repair_worker
-- @use repair/repair_task
-- @use store/later
-- @use store/record
-- @use store/state: live
-- @use task/claim: return_claim
-- @use task/identity: idempotency
-- @use wait/ends

-- repair_waiting sets counters of the waiting agents of a queue, as the caller has counted them, if nothing has happened to
-- the queue since before it began to count.
--
--   where  the counters, name=number, with commas between them: waiting, bounded_<mode>, unbounded_<mode>; then seq and front
--          of the root, and counters of the queue, as they were then; "-" for an absent one
local function repair_waiting(tx, _, name, where)
  local right, seen = string.match(where, "^([%w_=,]+) (.*)$")
  local words, root = {}, redis.call("HMGET", tx.key.root, "seq", "front")
  local of = redis.call("HMGET", tx.key.queue .. name, "running", "waiting", "enqueued", "completed", "failed", "cancelled")
  for _, value in ipairs({root[1], root[2], unpack(of)}) do
    words[#words + 1] = value or "-"
  end
  if not right or table.concat(words, " ") ~= seen then
    return nil, "the queue is at work: its waiting agents can be counted when it rests"
  end
  local r = {}
  for counter, n in string.gmatch(right, "([%l_]+)=(%d+)") do
    if counter == "waiting" or string.find(counter, "^u?n?bounded_%l") then
      later.before(tx, "HSET", tx.key.queue .. name, counter, n)
      r[#r + 1] = "count its waiting agents: " .. counter .. " " .. n
    end
  end
  return r
end

-- repair_wait gives back an agent whose wait is damaged. Its next attempt replays its journal and comes to the wait again:
-- then the wait is made of the records of its members, and keeps its limit if that is still known.
--
--   where  epoch and entry of the wait that was seen. If the agent is elsewhere by now, only its indexes are repaired
local function repair_wait(tx, s, id, where)
  local task = record.get(tx, id)
  local waits = task and task.waiting and (task.status == "WAITING" or task.status == "RUNNING")
  if waits and (task.epoch or "") .. " " .. task.waiting == where then
    return_claim(tx, task, false)
    return {"give the agent back: it comes to its wait again"}
  end
  return repair_task(tx, s, id, "")
end

-- free removes a key.
local function free(tx, r, key)
  idempotency.free(tx, key)
  mend.must(tx, r, "forget", key)
  r[#r + 1] = "remove from idem"
end

local function end_in_a_day(tx, r, key)
  if not mend.has(tx, "forget", key) then
    mend.must(tx, r, "forget", key, tx.at + 86400000)
  end
end

-- repair_key makes an idempotency key end when its task's scope says so. If the instant is lost, or the record of the task
-- is gone, the key ends in a day. A key that is kept too long cannot cause a second task.
--
-- Returns what it does, or nil and why it can do nothing
local function repair_key(tx, _, key)
  local id = idempotency.holder(tx, key)
  local r, task, why = {}, nil, nil
  if not id then
    mend.must(tx, r, "forget", key)
    return r
  end
  task, why = record.get(tx, id)
  if not task then
    return nil, why
  end
  local scope = task.idempotency_scope
  if not task.status or scope == "window" and task.idempotency_key == key then
    end_in_a_day(tx, r, key)
  elseif task.idempotency_key ~= key or scope and (not live(task) or scope == "started" and task.epoch) then
    free(tx, r, key)
  elseif live(task) then
    mend.must(tx, r, "forget", key)
  else
    end_in_a_day(tx, r, key)
  end
  return r
end

local most = 10000 -- children of an agent that a repair reads

-- handed returns the names of the children whose ends the waits have handed over, and how many they are.
local function handed(tx, id)
  local names, n = {}, 0
  local flat = redis.call("HGETALL", tx.key.journal .. id)
  for i = 1, #flat, 2 do
    local members, settled = string.match(digits(flat[i]) and flat[i + 1] or "", "^wait [^\n]*\n[^\n]*\n([^\n]*)\n([^\n]*)$")
    if members == settled then -- a wait of the mode collect lists what it has handed over in both
      for name in string.gmatch(settled or "", "%S+") do
        n = n + (names[name] and 0 or 1)
        names[name] = true
      end
    end
  end
  return names, n
end

-- kept removes from the list what is no end, or is in it twice. It returns the ends that are not in the list, by name, and
-- how many are.
local function kept(tx, r, id, all)
  local key, ended, sound = tx.key.ends .. id, {}, {}
  local listed = redis.call("LRANGE", key, 0, -1)
  for _, child in ipairs(all) do
    ended[string.sub(child.id, #id + 2)] = true
  end
  for _, name in ipairs(listed) do
    if ended[name] then
      ended[name] = nil
      sound[#sound + 1] = name
    end
  end
  if #sound < #listed then
    later.drop(tx, key)
    for _, name in ipairs(sound) do
      later.push(tx, key, name)
    end
    r[#r + 1] = "remove from ends:" .. id .. " what is no end"
  end
  return ended, #sound
end

-- wake gives an agent back that waits for ends.
local function wake(tx, r, task)
  local wait = redis.call("HMGET", tx.key.wait .. task.id, "mode", "state")
  if task.status == "WAITING" and wait[1] == "collect" and wait[2] == "open" then
    return_claim(tx, task, false)
    r[#r + 1] = "give the agent back: it comes to its wait again"
  end
end

-- repair_ends adds the ends that an agent which collects was not given, and that are not in its list (wait/ends.lua).
-- The results of its waits say which ends it was given. If a checkpoint has replaced results, nothing says so any more,
-- and repair_ends adds nothing. An agent that waits for ends is given back: it comes to its wait again and gets these.
local function repair_ends(tx, s, id)
  local task, r = record.get(tx, id), {}
  if not task or not task.collects or not live(task) then
    return r
  elseif redis.call("LLEN", tx.key.children .. id) > most then
    return nil, "it has more than " .. most .. " children, which is too many to compare with its ends: cancel the agent"
  end
  local all = ends.ended(tx, id, most)
  s.size = s.size + 100 * #all
  local others, n = kept(tx, r, id, all)
  if #all <= n + tonumber(task.collects) then
    return r
  end
  local names, given = handed(tx, id)
  if given ~= tonumber(task.collects) then
    return r, "its checkpoint replaced the results of waits, so nothing says which ends it was given: cancel the agent"
  end
  for _, child in ipairs(all) do
    local name = string.sub(child.id, #id + 2)
    if others[name] and not names[name] then
      ends.add(tx, id, child)
      r[#r + 1] = "add " .. name .. " to ends:" .. id
    end
  end
  wake(tx, r, task)
  return r
end

local repairs = {task = repair_task, wait = repair_wait, ends = repair_ends, queue = repair_queue, key = repair_key, waiting = repair_waiting}

function repairs.worker(tx, _, name)
  local r = {}
  if redis.call("EXISTS", tx.key.claims .. name, tx.key.worker .. name) > 0 then
    repair_worker(tx, r, name)
  end
  return r
end

function repairs.kind(tx, _, name)
  if redis.call("EXISTS", tx.key.figures .. name) == 0 or redis.call("SISMEMBER", tx.key.kinds, name) == 1 then
    return {}
  end
  later.before(tx, "SADD", tx.key.kinds, name)
  return {"add to kinds"}
end

-- A count that is lost cannot be counted again: it begins anew.
function repairs.figure(tx, _, kind, field)
  local value = redis.call("HGET", tx.key.figures .. kind, field)
  if not value or field == "about" or string.find(value, "^%d+$") and #value <= 16 then
    return {}
  end
  later.before(tx, "HDEL", tx.key.figures .. kind, field)
  return {"remove what is no count, so that it counts from 0 again"}
end

function repairs.controls(tx)
  local some = controlled(tx, "", {})
  if some then
    later.before(tx, "HSET", tx.key.root, "controlled", some)
    return {"note that a queue has controls"}
  end
  later.before(tx, "HDEL", tx.key.root, "controlled")
  return {"note that no queue has controls"}
end

function repairs.running(tx, _, _, where)
  count.again(tx, where == "go on" and where or true)
  return {"count running tasks again"}
end
