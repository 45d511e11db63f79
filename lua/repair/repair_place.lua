-- repair_place puts a PENDING task in its line, or on the clock of delayed tasks, and removes any other task from there.
-- A task that lost its place in line gets one at the end.
--
-- A task that was never claimed has no state. If such a task is in no line, and something is left of a life that only a
-- state could tell of, its state is lost, and repair_place returns that.
--
--   held  a worker seems to hold the task
--
-- @use queue/place
-- @use repair/mend

local function is_lost(tx, task, held)
  if redis.call("EXISTS", tx.key.state .. task.id) == 1 then
    return false
  end
  return held or mend.has(tx, "retained", task.id) or mend.has(tx, "dead:" .. task.queue, task.id) or
    redis.call("EXISTS", tx.key.children .. task.id, tx.key.journal .. task.id, tx.key.wait .. task.id) > 0
end

local function repair_place(tx, r, task, held)
  local id, line, pending = task.id, "ready:" .. task.queue, task.status == "PENDING"
  local waits = pending and not task.available_at and not task.role
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
end
