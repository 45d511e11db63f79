-- line_up puts a PENDING task in line, and has the limit of its line begin. The attempt of an agent that
-- was woken goes on, and so does its limit (attempt_at).
--
--   front  it was given back: it gets its place at the front again
--
-- @use queue/place
-- @use task/set_limit
local function line_up(tx, task, front)
  place(tx, task.id, task.queue, task.priority, task.woken and "woken" or front and "front")
  local instant = task.queue_timeout_ms and tx.at + task.queue_timeout_ms
  local attempt = tonumber(task.attempt_at or nil)
  if attempt and not (instant and instant < attempt) then
    instant = attempt
  end
  set_limit(tx, task, instant)
end
