-- signal_task returns the promise that a signal settles: the one that this call has completed before, else the first of
-- its name that is live. If no promise of that name is live, it returns the newest one. If no promise has that name
-- at all, it makes one. Promises of the same name are made when the agent requests the signal again.
--
--   id  of the first promise of that name
--
-- Returns  the task; or nil and an answer, if it cannot be made or read
--
-- @use store/record
-- @use task/adopt
-- @use task/asked_again
-- @use task/load_task
-- @use task/look_for_existing
-- @use task/plan

-- first returns the first promise of the name, and makes it if it does not exist.
local function first(tx, agent, id)
  local above = record.get(tx, agent)
  local fields = {kind = "signal", role = "promise", queue = above and above.queue or "default"}
  local asked = {shape = {fields = fields}, id = id, payload = ""}
  look_for_existing(tx, {asked})
  local refusal, d, parent = plan(tx, asked)
  if refusal and refusal[1] ~= "OK" then
    return nil, refusal
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
