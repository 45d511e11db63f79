-- line_up puts a PENDING task in line, and starts the limit of the line. The attempt of an agent that was woken
-- continues, with its limit (attempt_at).
--
--   front  the task was given back: it gets a place at the front of the line
--   limit  the instant at which it has been in line too long, if that was known before; nil: its queue_timeout from now
--
-- @use queue/place
-- @use task/set_limit
local function line_up(tx, task, front, limit)
  place(tx, task.id, task.queue, task.priority, task.woken and "woken" or front and "front")
  local instant = limit or task.queue_timeout_ms and tx.at + task.queue_timeout_ms
  local attempt = tonumber(task.attempt_at or nil)
  if attempt and not (instant and instant < attempt) then
    instant = attempt
  end
  set_limit(tx, task, instant)
end
