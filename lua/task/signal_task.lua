-- signal_task returns the promise that a signal settles: the one that this call has completed before, else the first of
-- its name that is live. If no promise of that name is live, it returns the newest one. If no promise has that name
-- at all, it makes one. Promises of the same name are made when the agent requests the signal again.
--
--   id  of the first promise of that name
--
-- Returns  the task; or nil and an answer, if it cannot be made or read
--
-- @use store/record
-- @use store/state: live
-- @use task/enqueue: adopt
-- @use task/finish: load_task
-- @use task/identity: left_behind
-- @use task/plan: look_for_existing, plan

-- nth returns the nth promise of a name, or nil and why if its record cannot be read.
local function nth(tx, id, n)
  local promise = id .. "__" .. n
  tx.on = promise
  local task, why = load_task(tx, promise)
  if task and left_behind(tx, task) then
    return {id = promise, status = false}
  end
  return task, why
end

-- newest returns the first promise of a name that is live, else the newest, and the number of the last that has ended.
-- Promises of a name are requested, and end, one after another, so newest does not read all of them.
--
--   last  the first promise of the name; it has ended
local function newest(tx, last)
  local id, ended, open, found = last.id, 1, nil, nil
  while open ~= ended + 1 do
    local n = open and math.floor((ended + open) / 2) or 2 * ended
    local task, why = nth(tx, id, n)
    if not task then
      return nil, why
    elseif task.role == "promise" and not live(task) then
      ended, last = n, task
    else
      open, found = n, task.role == "promise" and task
    end
  end
  return found or last, ended
end

-- settled_before returns the promise that this call has completed before, among the last 500 that have ended.
local function settled_before(tx, call, id, ended)
  local states, from = {}, math.max(ended - 499, 2)
  for n = from, ended do
    states[#states + 1] = tx.key.state .. id .. "__" .. n
  end
  for i, state in ipairs(states[1] and redis.call("MGET", unpack(states)) or states) do
    local task = state and string.find(state, " " .. call .. "\n", 1, true) and nth(tx, id, from + i - 1)
    if task and task.call == call then
      return task
    end
  end
end

-- asked_again returns the promise that a signal settles, among the first of its name and those of later requests:
-- "__2", "__3", … is behind their ids. It reads a few of them, however many there are.
--
-- Returns  the task; or nil and an answer, if one cannot be read
local function asked_again(tx, call, task)
  if live(task) or task.call == call then
    return task
  end
  local found, ended = newest(tx, task)
  if not found then
    return nil, {"BROKEN", ended}
  end
  found = settled_before(tx, call, task.id, ended) or found
  tx.on = found.id
  return found
end

-- first returns the first promise of the name, and makes it if it does not exist.
local function first(tx, agent, id)
  local above = record.get(tx, agent)
  local fields = {kind = "signal", role = "promise", queue = above and above.queue or "default"}
  local asked = {shape = {fields = fields}, id = id, payload = ""}
  look_for_existing(tx, {asked})
  local refusal, d, parent = plan(tx, asked)
  if refusal and refusal[1] ~= "OK" then
    return nil, refusal
  elseif d and above.role then
    return nil, {"INVALID", "agent", "is a " .. above.role .. ": a signal is for an agent, which waits for it by name; resolve ends a " .. above.role}
  elseif d then
    adopt(tx, asked, d, parent)
  end
  tx.on = id
  local task, why = load_task(tx, id)
  return task, why and {"BROKEN", why}
end

local function signal_task(tx, call, agent, id)
  local task, refusal = first(tx, agent, id)
  if task then
    task, refusal = asked_again(tx, call, task)
  end
  if not task and refusal[1] == "BROKEN" then
    return nil, {"BROKEN", refusal[#refusal]}
  end
  return task, refusal
end
