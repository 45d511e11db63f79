-- patience_end returns the instant at which its owner's wait cancels a child, or nil: the child's own limit in that
-- wait, if the wait is open and its limit is not before that. A child that runs and has a grace does not end by this
-- limit: cancel_member has it stop first.
--
-- @use store/attempt
-- @use store/index
-- @use task/owner_state
-- @use wait/read_wait
local function patience_end(tx, task)
  local owner = not task.cancel_at and not (task.status == "RUNNING" and task.cancel_grace_ms) and owner_state(tx, task)
  local w = owner and owner.waiting and read_wait(tx, owner.id)
  if w and w.state == "open" and w.patient then
    local name = string.sub(task.id, #owner.id + 2)
    local key = tx.key.patience .. owner.id
    local score = not w.gone[name] and not index.removed(tx, key, name) and attempt("ZSCORE", key, name)
    local instant = type(score) == "string" and tonumber(score)
    return instant and not (w.ends and w.ends < instant) and instant or nil
  end
end
