-- patience_end returns the instant at which its owner's wait cancels a child, or nil: the child's own limit in that
-- wait, if the wait is open and its limit is not before that. A child that runs and has a grace does not end by this
-- limit: cancel_member has it stop first.
--
-- An earlier attempt of the owner can have left limits of children that are not members of this wait. They end no task.
--
-- @use store/attempt
-- @use store/index
-- @use store/owner_state
-- @use wait/read_wait

-- score returns the score of a child in one of the sets of its owner's wait, or nil.
local function score(tx, key, name)
  local found = not index.removed(tx, key, name) and attempt("ZSCORE", key, name)
  return type(found) == "string" and tonumber(found) or nil
end

local function patience_end(tx, task)
  local owner = not task.cancel_at and not (task.status == "RUNNING" and task.cancel_grace_ms) and owner_state(tx, task)
  local w = owner and owner.waiting and read_wait(tx, owner.id)
  if w and w.state == "open" and w.patient then
    local name = string.sub(task.id, #owner.id + 2)
    local instant = not w.gone[name] and score(tx, tx.key.patience .. owner.id, name)
    if instant and not (w.ends and w.ends < instant) and score(tx, tx.key.pending .. owner.id, name) then
      return instant
    end
  end
end
