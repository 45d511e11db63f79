-- matches reports whether a task has what a filter asks for.
--
--   filter  kind, queue, owner; statuses: the set of them; timed_out; since and before: instants as numbers; error:
--           part of its error, or of the error of its newest attempt
--
-- @use task/body
local function has_error(tx, task, text)
  local stored = task.completed_at and task.status ~= "COMPLETED" and body(tx, task)
  return stored and string.find(stored, text, 1, true) or task.last_error and string.find(task.last_error, text, 1, true)
end

-- touched returns when a task was created, or ended if it has.
local function touched(task)
  return math.max(tonumber(task.created_at), tonumber(task.completed_at or 0))
end

local function matches(tx, task, filter)
  return (not filter.kind or task.kind == filter.kind) and (not filter.queue or task.queue == filter.queue) and
    (not filter.owner or task.owner == filter.owner) and (not filter.statuses or filter.statuses[task.status]) and
    (not filter.timed_out or task.timed_out) and
    (not filter.since or touched(task) >= filter.since) and (not filter.before or touched(task) < filter.before) and
    (not filter.error or has_error(tx, task, filter.error))
end
