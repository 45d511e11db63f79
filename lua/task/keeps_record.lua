-- keeps_record returns why the record of a task cannot be deleted, as an answer of the call delete; nil if it can.
--
-- @use task/drained
-- @use task/hooked
-- @use store/live
-- @use store/owner_state
local function keeps_record(tx, task)
  local owner, hook = owner_state(tx, task), hooked(tx, task)
  if live(task) then
    return {"LIVE", task.status}
  elseif owner then
    return {"OWNED", owner.id}
  elseif task.children and drained(tx, task.id) then
    return {"DRAINING", task.id}
  elseif task.owner and drained(tx, task.owner) then
    return {"DRAINING", task.owner}
  elseif hook then
    return {"HOOKED", hook}
  end
end
