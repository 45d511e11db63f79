-- journal stores the results of an agent's steps: a checkpoint, and later entries by number. When the agent's code runs
-- again, it reads the entries instead of repeating the steps. An entry never changes.
--
-- @use store/index
-- @use store/later
-- @use store/record
-- @use store/try
-- @use wait/wait: waits
local journal = {}

-- of returns the changes of a journal in this unit.
local function of(tx, id)
  local journals = waits(tx).journals
  local j = journals[id]
  if not j then
    j = {fields = {}, words = {}, bytes = 0}
    journals[id] = j
  end
  return j
end

local function put(j, name, value)
  j.fields[name] = value
  j.words[#j.words + 1], j.words[#j.words + 2] = name, value
end

-- read returns fields of a journal, as HMGET does.
function journal.read(tx, id, ...)
  local j = tx.waits and tx.waits.journals[id]
  local values = j and j.dropped and {} or redis.call("HMGET", tx.key.journal .. id, ...)
  for i, name in ipairs({...}) do
    values[i] = j and j.fields[name] or values[i] or false
  end
  return values
end

-- drop deletes a journal, and the members' own limits, when the agent has ended.
function journal.drop(tx, id)
  waits(tx).journals[id] = {fields = {}, words = {}, bytes = 0, dropped = true}
  later.drop(tx, tx.key.journal .. id)
  journal.drop_patience(tx, id)
end

function journal.drop_patience(tx, id)
  later.drop(tx, tx.key.patience .. id)
  index.forget(tx, tx.key.patience .. id)
end

-- keep_limit stores the limit and the number of the current wait, so that an agent which comes to the same wait again gets
-- no more time. Its members keep their own limits.
function journal.keep_limit(tx, task)
  local w = redis.call("HMGET", tx.key.wait .. task.id, "wait_deadline_at", "digest")
  local current = tx.waits and tx.waits.of[task.id]
  local ends = current and current.ends and string.format("%d", current.ends) or w[1]
  if ends or redis.call("EXISTS", tx.key.patience .. task.id) == 1 then
    put(of(tx, task.id), "until", task.waiting .. " " .. (ends or "none") .. " " .. (w[2] or ""))
  end
end

-- checkpoint replaces the content of a journal.
--
--   words  name, value, …
--   keep   the stored limit of a wait after the checkpoint, or nil
function journal.checkpoint(tx, task, words, keep)
  local id, j = task.id, {fields = {}, words = {}, bytes = 0, dropped = true}
  waits(tx).journals[id] = j
  later.drop(tx, tx.key.journal .. id)
  for i = 1, #words, 2 do
    put(j, words[i], words[i + 1])
  end
  if keep then
    put(j, "until", keep)
  end
  record.set(tx, task, "journal", "1")
  record.set(tx, task, "lease_losses", nil) -- the agent got something done: it is no suspect (task/suspects.lua)
end

-- add writes entries, each {number, text}. Numbers grow over the agent's whole life. An existing entry stays, because a
-- late repeat of a call must not change what the agent has read.
function journal.add(tx, task, entries)
  local j = of(tx, task.id)
  for _, entry in ipairs(entries) do
    local name = string.format("%d", entry[1])
    if not journal.read(tx, task.id, name)[1] then
      put(j, name, entry[2])
      j.bytes = j.bytes + #entry[2]
      record.set(tx, task, "lease_losses", nil)
    end
  end
  if entries[1] then
    record.set(tx, task, "journal", "1")
  end
end

function journal.write(tx)
  for id, j in pairs(tx.waits.journals) do
    for i = 1, #j.words, 4000 do
      try(tx, "HSET", tx.key.journal .. id, unpack(j.words, i, math.min(i + 3999, #j.words)))
    end
    if j.bytes > 0 then
      try(tx, "HINCRBY", tx.key.journal .. id, "bytes", string.format("%d", j.bytes))
    end
  end
end
