-- repairs maps each kind of subject (call/repair.lua lists them) to a function. It takes s, the state of the whole call, the
-- subject, and where; and returns a list of repairs, or nil and the error.
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

-- repair_waiting stores the caller's counts of a queue's waiting agents, unless the queue has changed since the caller began to
-- count.
--
--   where  name=number, separated by commas, of the counters waiting, bounded_<mode> and unbounded_<mode>; then seq and front of
--          the root and counters of the queue at the beginning, "-" for an absent one
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

-- repair_wait gives back an agent whose wait is damaged. Its next attempt replays the journal and comes to the same wait, which
-- is then built from the records of its members. The limit is kept if it is still stored.
--
--   where  epoch and entry of the damaged wait. If the agent has left it, only the indexes are repaired
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

-- repair_key schedules the end of an idempotency key by the scope of its task. If the instant or the record of the task is
-- lost, the key ends in a day: a key that is kept too long cannot cause a second task.
--
-- Returns a list of repairs, or nil and the error
local function repair_key(tx, _, key)
  local id = idempotency.holder(tx, key)
  local r, task, fault = {}, nil, nil
  if not id then
    mend.must(tx, r, "forget", key)
    return r
  end
  task, fault = record.get(tx, id)
  if not task then
    return nil, fault
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

-- handed_over returns the names of the children whose ends the waits have returned, and their number.
local function handed_over(tx, id)
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

-- clean_list removes from the list duplicates and children that have not ended. It returns the ended children that the list
-- lacks, by name, and the number of those that it has.
local function clean_list(tx, r, id, children)
  local key, unlisted, sound = tx.key.ends .. id, {}, {}
  local listed = redis.call("LRANGE", key, 0, -1)
  for _, child in ipairs(children) do
    unlisted[string.sub(child.id, #id + 2)] = true
  end
  for _, name in ipairs(listed) do
    if unlisted[name] then
      unlisted[name] = nil
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
  return unlisted, #sound
end

-- wake gives back an agent that waits in the mode collect.
local function wake(tx, r, task)
  local wait = redis.call("HMGET", tx.key.wait .. task.id, "mode", "state")
  if task.status == "WAITING" and wait[1] == "collect" and wait[2] == "open" then
    return_claim(tx, task, false)
    r[#r + 1] = "give the agent back: it comes to its wait again"
  end
end

-- repair_ends adds ends that a collecting agent has not received and that its list lacks (wait/ends.lua). The results of its
-- waits show which ends it has received. If a checkpoint has replaced them, repair_ends adds nothing, because an end must not
-- be received twice. A waiting agent is given back, so that it comes to its wait again and receives the ends.
local function repair_ends(tx, s, id)
  local task, r = record.get(tx, id), {}
  if not task or not task.collects or not live(task) then
    return r
  elseif redis.call("LLEN", tx.key.children .. id) > most then
    return nil, "it has more than " .. most .. " children, which is too many to compare with its ends: cancel the agent"
  end
  local children = ends.find_ended(tx, id, most)
  s.size = s.size + 100 * #children
  local others, n = clean_list(tx, r, id, children)
  if #children <= n + tonumber(task.collects) then
    return r
  end
  local names, given = handed_over(tx, id)
  if given ~= tonumber(task.collects) then
    return r, "its checkpoint replaced the results of waits, so nothing says which ends it was given: cancel the agent"
  end
  for _, child in ipairs(children) do
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

-- figure removes a count that is no number. It starts again from 0, because nothing else has the number.
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
