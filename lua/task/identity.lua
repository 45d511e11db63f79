-- Which task an id or an idempotency key means: the same id can have had several tasks.
--
-- @use store/index
-- @use store/later
-- @use store/messages: alarm
-- @use store/record
-- @use store/state: live
-- @use store/try: attempt
-- @use store/tx: last, memo

-- incarnation tells apart the tasks that have had one id, one after another: the id of a task with a name is used again, and a
-- client can give any id again. Each task has a number, which is greater than the number and every epoch of those before it. It
-- is the ms at which the task was made, unless the clock of Redis was set back since. Children and hooks store the number of
-- the task that they belong to. Instants are not compared for this: they can be equal, and go back.
local incarnation = {}

-- number returns the number of a task. The record has it if it is not created_at.
function incarnation.number(task)
  return task.number or task.created_at
end

-- first_epoch returns the epoch of a task's first claim: 1, and for a task with a name its number, so that epochs grow from
-- one task to the next: a claim of an earlier task does not hold a later one.
function incarnation.first_epoch(task)
  return string.find(task.id, "^%d+%-[ne]%-") and incarnation.number(task) or "1"
end

-- past notes that the record of a task goes: task/create.lua gives new tasks a greater number.
function incarnation.past(tx, task)
  local newest = math.max(tonumber(incarnation.number(task)), tonumber(task.epoch) or 0)
  if newest >= (tx.last or tx.root).number then
    last(tx).number = newest + 1
  end
end

-- belongs reports whether a child or hook is of this task, and not of an earlier one with the same id. Records that a version
-- without numbers made have only their instants.
function incarnation.belongs(child, task)
  if child.of_number then
    return child.of_number == incarnation.number(task)
  end
  return tonumber(child.created_at) >= tonumber(task.created_at)
end

-- drained returns the instant at which a task ended, if not all of its children have ended yet; nil for any other
-- task. It also returns nil if the clock `draining` is of the wrong type, since that is no fault of the task.
local function drained(tx, id)
  local known = memo(tx, "drained")
  local ended = known[id]
  if ended == nil then
    local score = attempt("ZSCORE", tx.key.draining, id)
    ended = type(score) == "string" and tonumber(score) or false
    local task = ended and record.get(tx, id)
    if task and live(task) then -- the record says otherwise, and the record decides
      ended = false
    end
    known[id] = ended
  end
  return ended or nil
end

-- drains notes since when the children of an ended task must end; false: all of them have ended.
local function drains(tx, id, ended)
  memo(tx, "drained")[id] = ended
end

-- left_behind reports whether an ended child or hook belongs to an earlier task that had the id of its owner. A task
-- with a name has the same id each time. Its record goes after its retention, and those of its children and hooks
-- can be kept longer. The new owner must not find them.
local function left_behind(tx, old)
  local above = old.owner or old.hook_of
  local owner = above and record.get(tx, above)
  return owner and owner.status and old.status and not live(old) and not incarnation.belongs(old, owner) and
    not (old.children and drained(tx, old.id))
end

-- idempotency keeps which task each idempotency key belongs to: the id of the task, and the digest of its kind and
-- payload.
local idempotency = {}

function idempotency.digest(kind, payload)
  return redis.sha1hex(kind .. "\n" .. payload)
end

-- holder returns the id that a key leads to, even if the time of the key is up.
function idempotency.holder(tx, key)
  return string.match(memo(tx, "holders")[key] or redis.call("HGET", tx.key.idem, key) or "", "^(%S+)")
end

-- find returns the id and the digest that a key holds, or nil if the key is free. If the key cannot be read, it
-- returns nil, nil and why. A key whose time is up is free, even before the sweep removes it.
function idempotency.find(tx, key)
  local holders = memo(tx, "holders")
  local held = holders[key]
  if held == nil then
    held = attempt("HGET", tx.key.idem, key)
    local score = attempt("ZSCORE", tx.key.forget, key)
    if type(held) == "table" or type(score) == "table" then
      return nil, nil, held and held.err or score.err
    end
    local forgotten = tonumber(held and score or nil)
    holders[key] = held
    if forgotten and forgotten <= tx.at then
      index.remove(tx, tx.key.forget, key)
      idempotency.free(tx, key)
    end
    held = holders[key]
  end
  if held then
    return string.match(held, "^(%S+) (%x+)$")
  end
end

-- keep gives a key to a task: for `window` ms, or without a limit if window is nil.
function idempotency.keep(tx, key, id, digest, window)
  local holder = id .. " " .. digest
  memo(tx, "holders")[key] = holder
  later.before(tx, "HSET", tx.key.idem, key, holder)
  if window then
    index.add(tx, tx.key.forget, string.format("%d", tx.at + window), key)
    alarm.note(tx, tx.at + window)
  end
end

function idempotency.free(tx, key)
  memo(tx, "holders")[key] = false
  later.before(tx, "HDEL", tx.key.idem, key)
end
