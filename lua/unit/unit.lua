-- unit decides and commits one unit of work. decide reads, and changes tables; nothing is written before it returns.
-- Waits that fire are decided in the same unit.
--
-- If deciding raises, the data of the task that it was on (tx.on) are at fault. The unit is thrown away and
-- decided again without that task, which is put aside. If tx.on is not set, the error is raised to the caller.
--
-- Returns what decide returns
--
-- @use store/refused
-- @use unit/commit
-- @use store/own
-- @use store/reason
-- @use store/renew
-- @use task/put_aside
-- @use agent/wake_agents

--   raised  ids of the tasks on which this unit has raised
local function decide_all(tx, raised, decide, ...)
  for _, id in ipairs(raised) do
    put_aside(tx, id, tx.poison[id])
  end
  local answer = decide(tx, ...)
  wake_agents(tx)
  return answer
end

local function unit(tx, decide, ...)
  if tx.stale then
    renew(tx)
  end
  local may_cancel, may_wake, raised = tx.may_cancel, tx.may_wake, {}
  local ok, answer = pcall(decide_all, tx, raised, decide, ...)
  while not ok do
    local id = tx.on
    if not id or tx.poison[id] or refused(answer) then
      error(answer, 0)
    end
    own(tx, "poison")[id], raised[#raised + 1] = reason(answer), id
    renew(tx)
    tx.may_cancel, tx.may_wake = may_cancel, may_wake -- the unit that was thrown away has cancelled and woken nothing
    ok, answer = pcall(decide_all, tx, raised, decide, ...)
  end
  commit(tx, tx.strict)
  return answer
end
