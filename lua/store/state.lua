-- What a task's record says without reading anything else.

local alive = {PENDING = true, RUNNING = true, WAITING = true}

-- live reports whether a task can still change.
local function live(task)
  return alive[task.status]
end

-- owner returns the id of the task that a child belongs to, or nil for a root task. It reads ancestry from the
-- id: the owner's id, a dot, and a counter or a name. An id that ends in a bang and a word is a hook
-- (task/finish.lua): a root task, whatever is before the bang.
local function owner(id)
  if string.find(id, ".", 1, true) then
    return string.match(id, "^(.+)%.[^.!]+$")
  end
end

-- is_run reports whether the tasks of a kind are whole runs of a flow: flow.<id>. Parts of runs (flow.<id>/<template>)
-- and the tasks that come with flows (flow/wait) are nodes of a run. The time of a run is the outermost of the three
-- layers, so a run that is out of time has the timeout_type workflow.
local function is_run(kind)
  return string.find(kind, "^flow%.[^/]+$") ~= nil
end

-- policy returns what the timeout of a task does, as its event and the figures say: cancel_all ends its children, too;
-- fail ends the task, and its owner counts it as failed (agent/rules.lua) if on_deadline of the task is fail. The run
-- of a flow has this policy also before it has children.
local function policy(task)
  local of_the_run = task.timeout_type == "execution" or task.timeout_type == "workflow"
  return of_the_run and (task.children or is_run(task.kind)) and (task.on_deadline or "cancel_all") or "fail"
end

-- final returns the latest instant at which a task can live: its own deadline, or its owner's bound if that is not
-- later. It returns nil if the task has neither.
local function final(task)
  return tonumber(task["until"] or task.deadline_at)
end

-- retention returns how many ms the record of an ended task is kept. It is at least 60 s, since a caller can repeat a
-- call for 30 s and must find the record.
local function retention(task)
  return math.max(tonumber(task.retention_ms or task.status == "COMPLETED" and 900000 or 604800000), 60000)
end

-- is_attempt_limit reports whether limit_at of a task is the limit of its attempt, and not the limit of its line.
-- The attempt of an agent continues while the agent waits, and while it is in line after it was woken.
local function is_attempt_limit(task)
  return task.status ~= "PENDING" or (task.woken or false) and task.limit_at == task.attempt_at
end

-- set_of returns the set for tasks that are held for this reason: queue,kind or, of agents that programs cannot replay,
-- queue,kind,programs. No name has a comma. Of suspects (task/suspects.lua) the set has !few or !alone at its end.
local function set_of(task, why)
  local programs = why == "diverged" and (task.held_by or "-") or why == "suspect" and task.held_by
  local set = task.queue .. "," .. task.kind .. (programs and "," .. programs or "")
  if why == "suspect" then -- an older program reads what is behind the kind as programs, so it takes these tasks, too
    set = set .. (programs and "" or ",") .. (tonumber(task.lease_losses) == 1 and "!few" or "!alone")
  end
  return set
end

-- held_set returns the set in which a task is held, or nil (task/hold.lua). A task whose last worker died is a suspect until
-- it gets something done.
local function held_set(task)
  local why = task.held or task.lease_losses and "suspect"
  return why and task.status == "PENDING" and not task.available_at and set_of(task, why) or nil
end

-- nearest returns the next instant at which something other than the deadline falls due for a live task: the limit of
-- its line or attempt, its warning, or the end of its cancellation's grace. It returns nil if the task has no such instant.
local function nearest(task)
  local first = tonumber(task.limit_at)
  local warn, grace = tonumber(task.warn_at), tonumber(task.grace_at)
  if warn and not (first and first <= warn) then
    first = warn
  end
  if grace and not (first and first <= grace) then
    first = grace
  end
  return first
end
