-- leave removes a live task from where its status has put it: its line, the delayed tasks, its worker's claims, or its
-- wait. A promise is in none of them.
--
-- @use store/index
-- @use queue/count
-- @use wait/forget_wait
-- @use wait/stop_waiting
local function leave(tx, task)
  local key = tx.key
  if task.status == "RUNNING" then
    index.remove(tx, key.claims .. task.worker, task.id)
    count.run(tx, task.queue, task.worker, -1)
  elseif task.status == "WAITING" then
    stop_waiting(tx, task)
  elseif task.available_at then
    index.remove(tx, key.delayed, task.id)
  elseif not task.role then
    index.remove(tx, key.ready .. task.queue, task.id)
  end
  if task.waiting then
    forget_wait(tx, task)
  end
end
