-- Suspicion: which task kills its workers.
--
-- A worker that dies loses all its claims, and any of them can be the reason. So a lost lease counts against a task only
-- if the worker held nothing else. After two losses in a row a task is handed out alone: to a worker that holds nothing,
-- and that gets nothing more until the task is settled. The fourth loss in a row that hits a task alone ends it.
--
-- A worker is rarely without tasks. So one worker of the partition, the isolator, takes no more of them until it is.
-- The others pass over the suspects, unless they hold nothing. A suspect that has been in line for ten minutes is handed out as
-- other tasks are, since no worker may be free of them for hours.
--
-- Two fields of a task count its losses in a row:
--
--   lost_beside  those beside other tasks; 2: two or more
--   lost_alone   those of a worker that held nothing else
--
-- @use store/later
-- @use store/record
-- @use store/try
local suspicion = {}

local patience = 600000

-- alone reports whether a task is handed out alone.
function suspicion.alone(tx, task)
  return task.rich and (task.lost_beside or 0) + (task.lost_alone or 0) > 1 and
    tx.at - (task.ready_at or task.created_at) < patience
end

-- raise counts another lost lease. It returns false if the task must end.
--
--   alone  the worker held nothing else
function suspicion.raise(tx, task, alone)
  local name, most = "lost_beside", 2
  if alone then
    name, most = "lost_alone", 4
  end
  local losses = math.min((task[name] or 0) + 1, most)
  record.set(tx, task, name, string.format("%d", losses))
  return not alone or losses < most
end

-- clear ends the suspicion: an attempt of the task has ended, and its worker lives.
function suspicion.clear(tx, task)
  record.set(tx, task, "lost_beside", nil)
  record.set(tx, task, "lost_alone", nil)
end

-- isolates reports whether a worker is the isolator, or becomes it, since no live worker is.
local function isolates(tx, worker)
  local isolator = try(tx, "HGET", tx.key.root, "isolator")
  if isolator and isolator ~= worker then
    local lease = tonumber(try(tx, "ZSCORE", tx.key.workers, isolator))
    if lease and lease >= tx.at then
      return false
    end
  end
  if isolator ~= worker then
    later.before(tx, "HSET", tx.key.root, "isolator", worker)
  end
  return true
end

-- fits reports whether a worker can have a task that is handed out alone. If it can, the worker gets nothing else.
--
--   ask  its request; gets isolate: the worker must get rid of its other tasks and ask again
--   got  what the call gives out so far (task/claim.lua)
function suspicion.fits(tx, task, ask, got)
  local free = ask.state == "alone" or ask.state == "" and try(tx, "ZCARD", tx.key.claims .. ask.worker) == 0
  if free and not got.tasks[1] then
    got.alone, got.full = task.id, true
    return true
  end
  got.passed[task.queue] = (got.passed[task.queue] or 0) + 1
  if ask.state == "idle" or ask.state ~= "alone" and isolates(tx, ask.worker) then
    ask.isolate = ask.state ~= ""
    got.full = ask.state == "" -- it gets no more here until it holds nothing
  end
  return false
end

-- holds reports whether a worker that asks for tasks gets none, since it still runs one alone. If it asks although it does, or
-- the task has run alone for long enough, the task is no longer alone.
function suspicion.holds(tx, ask, id)
  if not redis.call("ZSCORE", tx.key.claims .. ask.worker, id) then
    return false
  end
  local task = record.get(tx, id)
  if ask.state == "" and task and task.started_at and tx.at - task.started_at < patience then
    return true
  end
  later.before(tx, "HDEL", tx.key.worker .. ask.worker, "alone")
  return false
end

-- release ends the isolation of a worker that asked for suspects and got none.
function suspicion.release(tx, worker)
  if try(tx, "HGET", tx.key.root, "isolator") == worker then
    later.before(tx, "HDEL", tx.key.root, "isolator")
  end
end
