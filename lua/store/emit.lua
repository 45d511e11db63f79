-- emit tells of a transition. No other file does, so a transition has one event, with the clock
-- reading of its call.
--
--   level  "terminal" for the end of a task, "all" for everything else. The namespace says which it
--          wants: all, terminal (default) or none
--   ...    name, value, ...: what only this kind of event says
--
-- @use store/own
-- @use task/owner
local function emit(tx, level, kind, task, ...)
  local wanted = tx.root.level
  if wanted == "none" or level == "all" and wanted ~= "all" then
    return
  end
  local event = {"kind", kind, "task_id", task.id, "task_kind", task.kind or "", "queue", task.queue or "", "at", tx.now,
    "epoch", task.epoch or "0", "attempt", task.retries and string.format("%d", task.retries + 1) or "1",
    "worker", task.worker or "", ...}
  local parent = task.owner or task.owner == nil and owner(task.id)
  if parent then
    local n = #event
    event[n + 1], event[n + 2] = "agent_execution_id", parent
    event[n + 3], event[n + 4] = "workflow_run_id", string.match(task.id, "^.*![^.]*") or string.match(task.id, "^[^.]+")
  end
  local events = own(tx, "events")
  events[#events + 1] = event
end
