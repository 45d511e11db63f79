-- repair_task corrects a task's entries in all indexes by its record. It ends nothing: a reaper ends the task if its time is
-- up.
--
--   where  keys that have the task and perhaps should not, or that may lack it, separated by spaces
--   s      of the whole call: size, the bytes that it has read; listed, the last children of owners
--
-- Returns a list of repairs, with an error if something is left; or nil and the error
--
-- @use agent/count: nearest_patience
-- @use check/values: digits
-- @use queue/queue: count, place
-- @use repair/mend: mend, repair_worker
-- @use store/index
-- @use store/later
-- @use store/record: owner_state, record
-- @use store/state: held_set, live, nearest, retention
-- @use task/body: payload
-- @use task/place: keep_held
-- @use task/identity: drained, idempotency, left_behind
-- @use wait/wait: read_wait

-- repair_watch puts an agent on the clock of waits at the next instant of its wait, and removes any other task. An agent
-- whose wait has fired is due at once, so that the sweep wakes it.
local function repair_watch(tx, r, task)
  local w = task.status == "WAITING" and read_wait(tx, task.id)
  if not w then
    if task.status ~= "WAITING" then
      mend.must(tx, r, "waits", task.id)
    end
  elseif w.state == "open" then
    local first, patience = w.ends, nearest_patience(tx, task.id)
    if patience and not (first and first <= patience) then
      first = patience
    end
    mend.must(tx, r, "waits", task.id, first)
  elseif not mend.has(tx, "waits", task.id) then
    mend.must(tx, r, "waits", task.id, tx.at - 1)
  end
end

local function is_lost(tx, task, held)
  if redis.call("EXISTS", tx.key.state .. task.id) == 1 then
    return false
  end
  return held or mend.has(tx, "retained", task.id) or mend.has(tx, "dead:" .. task.queue, task.id) or
    redis.call("EXISTS", tx.key.children .. task.id, tx.key.journal .. task.id, tx.key.wait .. task.id) > 0
end

-- repair_place puts a PENDING task in its line, into its set of held tasks, or on the clock of delayed tasks, and removes any
-- other task from there.
-- A task that lost its place in line gets one at the end.
--
-- A task that was never claimed has no state. If a task without a state is in no line, but other keys show that it was
-- claimed, its state is lost, and repair_place returns that error.
--
--   held  a worker seems to hold the task
local function repair_place(tx, r, task, held)
  local id, line, pending = task.id, "ready:" .. task.queue, task.status == "PENDING"
  local set = held_set(task)
  local waits = pending and not task.available_at and not task.role and not set
  local there = mend.has(tx, line, id)
  if waits and not there then
    if is_lost(tx, task, held) then
      return "its state is lost: nothing says how often it ran"
    end
    place(tx, id, task.queue, task.priority, task.woken and "woken" or nil)
    r[#r + 1] = "add to " .. line
  elseif not waits then
    mend.must(tx, r, line, id)
  end
  mend.must(tx, r, "delayed", id, pending and task.available_at)
  if set and not (mend.has(tx, "held:" .. set, id) and mend.has(tx, "holds", set)) then
    keep_held(tx, task, set)
    r[#r + 1] = "add to held:" .. set
  end
end

-- has_word reports whether a text contains a word, where single spaces separate words.
local function has_word(text, word)
  return string.find(" " .. text .. " ", " " .. word .. " ", 1, true) ~= nil
end

-- add appends a child to the list of its owner, once.
local function add(tx, s, r, task)
  local listed = s.listed[task.owner]
  if not listed then
    listed = {}
    for _, id in ipairs(redis.call("LRANGE", tx.key.children .. task.owner, -200, -1)) do
      listed[id] = true
    end
    s.listed[task.owner] = listed
  end
  if not listed[task.id] then
    listed[task.id] = true
    later.push(tx, tx.key.children .. task.owner, task.id)
    r[#r + 1] = "add to children:" .. task.owner
  end
end

-- repair_kin adds a child to the children of its owner. If the owner has ended and the child lives, the owner is put on
-- the clock `draining`, so that the sweep ends the child.
--
--   where  contains children or draining if the caller did not find the child in the whole list. This call reads the last 200
--          entries again, so that a repeat adds nothing
local function repair_kin(tx, s, r, task, where)
  local owner = task.owner and record.get(tx, task.owner)
  if not owner or not owner.status then
    return
  end
  if has_word(where, "children") and live(owner) and not left_behind(tx, task) then
    add(tx, s, r, task)
  elseif live(task) and not live(owner) then
    if has_word(where, "draining") then
      add(tx, s, r, task)
    end
    mend.must(tx, r, "draining", owner.id, owner.completed_at)
  end
end

-- repair_key_of corrects the entry of a live task's idempotency key. If the key belongs to another live task with the same key,
-- both were created while the entry was missing. Then nothing is changed, and repair_key_of returns the error.
local function repair_key_of(tx, s, r, task)
  local key, scope = task.idempotency_key, task.idempotency_scope
  if not key or scope == "window" or scope == "started" and task.epoch then
    return nil
  end
  local id = idempotency.holder(tx, key)
  if id == task.id then
    return nil
  end
  local other = id and record.get(tx, id)
  if other and live(other) and other.idempotency_key == key then
    return "the live task " .. id .. " has the same idempotency key"
  end
  local text = payload(tx, task)
  if not text then
    return "its payload is lost"
  end
  s.size = s.size + #text
  idempotency.keep(tx, key, task.id, idempotency.digest(task.kind, text))
  r[#r + 1] = "add its key to idem"
end

-- repair_kept schedules the removal of an ended task's record, if nothing removes it. The retention starts again, because the
-- instant is lost. A live task and a child of a live owner must stay.
local function repair_kept(tx, r, task)
  local id, dead = task.id, "dead:" .. task.queue
  if live(task) or owner_state(tx, task) and not left_behind(tx, task) then
    mend.must(tx, r, "retained", id)
    mend.must(tx, r, dead, id)
    return
  end
  if not mend.has(tx, "retained", id) then
    if task.owner and drained(tx, task.owner) then
      return -- the sweep of its owner schedules it
    end
    mend.must(tx, r, "retained", id, tx.at + retention(task))
  end
  mend.must(tx, r, dead, id, task.status ~= "COMPLETED" and task.completed_at)
end

-- repair_journal counts the bytes of an agent's journal again, or deletes a journal that the record does not mention.
local function repair_journal(tx, s, r, task)
  if not task.journal then
    mend.drop(tx, r, "journal:" .. task.id)
    return
  end
  local key, size, counted = tx.key.journal .. task.id, 0, nil
  local flat = redis.call("HGETALL", key)
  for i = 1, #flat, 2 do
    if flat[i] == "bytes" then
      counted = tonumber(flat[i + 1])
    elseif digits(flat[i]) then
      size = size + #flat[i + 1]
    end
  end
  s.size = s.size + size
  if flat[1] and (counted or 0) ~= size then
    later.before(tx, "HSET", key, "bytes", string.format("%d", size))
    r[#r + 1] = "count journal:" .. task.id .. " again"
  end
end

-- repair_claim puts a RUNNING task among the claims of its worker, and gives the worker a lease if it has none: a reaper
-- gives the task back unless the worker sends a heartbeat. Any other task is removed from the claims of its last worker.
--
-- The score is between those of the worker's last two fetches. So a repeat of the last fetch does not return the task, and a
-- heartbeat that was sent before the last fetch was answered does not give it back.
local function repair_claim(tx, r, task)
  local worker = task.worker
  if task.status ~= "RUNNING" then
    if worker then
      mend.must(tx, r, "claims:" .. worker, task.id)
    end
    return
  end
  if not mend.has(tx, "claims:" .. worker, task.id) then
    local newest = tonumber(redis.call("HGET", tx.key.worker .. worker, "seq") or nil) or 0
    index.add(tx, tx.key.claims .. worker, string.format("%.1f", newest - 0.5), task.id)
    r[#r + 1] = "add to claims:" .. worker
  end
  repair_worker(tx, r, worker)
end

local function clear(tx, r, id)
  for _, clock in ipairs({"deadlines", "limits", "delayed", "waits", "draining", "retained", "broken"}) do
    mend.must(tx, r, clock, id)
  end
  for _, kind in ipairs({"payload:", "result:", "children:", "wait:", "pending:", "settled:", "patience:", "journal:", "ends:"}) do
    mend.drop(tx, r, kind .. id)
  end
end

-- drop_wait deletes the keys of a wait that the task has left.
local function drop_wait(tx, r, task)
  local kinds = not live(task) and {"wait:", "pending:", "settled:", "patience:", "journal:"} or not task.waiting and {"wait:", "pending:", "settled:"} or {}
  kinds[#kinds + 1] = not (live(task) and task.collects) and "ends:" or nil
  for _, kind in ipairs(kinds) do
    mend.drop(tx, r, kind .. task.id)
  end
end

-- leave removes a task from lines, claims and dead lists of other queues and workers. It returns whether a worker seems to
-- hold the task.
local function leave(tx, r, task, where)
  local held = false
  for name in string.gmatch(where, "%S+") do
    local kind, of = string.match(name, "^(%l+):(.*)$")
    held = held or kind == "claims"
    if (kind == "ready" or kind == "dead") and of ~= task.queue or kind == "held" and of ~= held_set(task) or kind == "claims" and (task.status ~= "RUNNING" or of ~= task.worker) then
      mend.must(tx, r, name, task.id)
    end
  end
  return held
end

local function repair_task(tx, s, id, where)
  if #id > 1024 then -- to read its keys would be costly
    return nil, "it is longer than any id: remove the entry by hand"
  end
  local task, fault = record.get(tx, id)
  if not task then
    return nil, fault
  end
  local r = {}
  local held = leave(tx, r, task, where)
  if not task.status then
    clear(tx, r, id)
    if held then
      count.again(tx)
    end
    return r
  end
  fault = repair_place(tx, r, task, held)
  if fault then
    return r, fault
  end
  local alive = live(task)
  mend.must(tx, r, "deadlines", id, alive and task.deadline_at)
  mend.must(tx, r, "limits", id, alive and nearest(task))
  mend.must(tx, r, "broken", id)
  repair_claim(tx, r, task)
  drop_wait(tx, r, task)
  repair_watch(tx, r, task)
  repair_kept(tx, r, task)
  repair_kin(tx, s, r, task, where)
  if alive then
    if has_word(where, "journal") then
      repair_journal(tx, s, r, task)
    end
    mend.must(tx, r, "draining", id)
    fault = repair_key_of(tx, s, r, task)
  end
  return r, fault
end
