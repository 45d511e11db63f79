-- repair_task makes a task's entries in all indexes agree with its record. It ends nothing: a reaper ends the task if
-- its time is up.
--
--   where  keys in which the task was found and may not belong, or which may lack it, with spaces between them
--   s      the whole call: size, in bytes of what it has read; listed, the last children of owners (repair/repair_kin.lua)
--
-- Returns what it does, or nil and why it can do nothing
--
-- @use check/has_word
-- @use store/record
-- @use store/live
-- @use task/nearest
-- @use repair/mend
-- @use repair/repair_claim
-- @use repair/repair_journal
-- @use repair/repair_kept
-- @use repair/repair_key_of
-- @use repair/repair_kin
-- @use repair/repair_place
-- @use repair/repair_watch

local function clear(tx, r, id)
  for _, clock in ipairs({"deadlines", "limits", "delayed", "waits", "draining", "retained", "broken"}) do
    mend.must(tx, r, clock, id)
  end
  for _, kind in ipairs({"payload:", "result:", "children:", "wait:", "pending:", "settled:", "patience:", "journal:", "ends:"}) do
    mend.drop(tx, r, kind .. id)
  end
end

-- drop_wait deletes what is left of a wait that the task is not at.
local function drop_wait(tx, r, task)
  local kinds = not live(task) and {"wait:", "pending:", "settled:", "patience:", "journal:"} or not task.waiting and {"wait:", "pending:", "settled:"} or {}
  kinds[#kinds + 1] = not (live(task) and task.collects) and "ends:" or nil
  for _, kind in ipairs(kinds) do
    mend.drop(tx, r, kind .. task.id)
  end
end

-- leave removes a task from others' lines, claims and dead lists. It returns whether a worker seems to hold the task.
local function leave(tx, r, task, where)
  local held = false
  for name in string.gmatch(where, "%S+") do
    local kind, of = string.match(name, "^(%l+):(.*)$")
    held = held or kind == "claims"
    if (kind == "ready" or kind == "dead") and of ~= task.queue or kind == "claims" and (task.status ~= "RUNNING" or of ~= task.worker) then
      mend.must(tx, r, name, task.id)
    end
  end
  return held
end

local function repair_task(tx, s, id, where)
  if #id > 1024 then -- to read its keys would be costly
    return nil, "it is longer than any id: remove the entry by hand"
  end
  local task, why = record.get(tx, id)
  if not task then
    return nil, why
  end
  local r = {}
  local held = leave(tx, r, task, where)
  if not task.status then
    clear(tx, r, id)
    tx.recount = tx.recount or held
    return r
  end
  why = repair_place(tx, r, task, held)
  if why then
    return r, why
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
    why = repair_key_of(tx, s, r, task)
  end
  return r, why
end
