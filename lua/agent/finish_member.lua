-- finish_member ends a member whose time is up. It returns the task if it has ended.
--
-- @use store/record
-- @use store/live
-- @use task/load_task
-- @use agent/cancel_member
-- @use agent/drop_patience
local function finish_member(tx, id, w, m)
  if m.patience then
    tx.may_cancel = tx.may_cancel - 1
    drop_patience(tx, id, w, m.name)
    cancel_member(tx, m.id, "patience", m.ended)
  else
    local before = tx.on
    tx.on = m.id
    load_task(tx, m.id)
    tx.on = before
  end
  if m.impatient then -- it has ended by its limit in the wait, or before it
    drop_patience(tx, id, w, m.name)
  end
  local task = record.get(tx, m.id)
  return task and task.status and not live(task) and task
end
