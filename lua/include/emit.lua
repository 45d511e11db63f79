-- emit appends an event. No other code does, so a transition has one event, with
-- the clock reading of its script.
--
--   level  "terminal" for the end of a task, "all" for everything else. The
--          namespace says which it wants: all, terminal (default) or none.
--   ...    name, value, ...: what only this kind of event says
--
-- @include owner
-- @include root
-- @include stamp
-- @include write
local function emit(k, level, kind, task, at, ...)
  root(k)
  if k.level == "none" or (level == "all" and k.level ~= "all") then
    return
  end
  local attempt = task.retries and string.format("%d", task.retries + 1) or "1"
  local parent = owner(task.id)
  if parent then
    write(k, "XADD", k.events, "MAXLEN", "~", "100000", "*", "kind", kind, "task_id", task.id,
      "task_kind", task.kind, "queue", task.queue, "at", stamp(k, at), "epoch", task.epoch or "0",
      "attempt", attempt, "worker", task.worker or "",
      "agent_execution_id", parent, "workflow_run_id", string.match(task.id, "^.*![^.]*") or string.match(task.id, "^[^.]+"), ...)
  else
    write(k, "XADD", k.events, "MAXLEN", "~", "100000", "*", "kind", kind, "task_id", task.id,
      "task_kind", task.kind or "", "queue", task.queue or "", "at", stamp(k, at), "epoch", task.epoch or "0",
      "attempt", attempt, "worker", task.worker or "", ...)
  end
end
