-- withdraw takes a live task out of wherever its status has put it: its line, the
-- delayed ones, its worker's claims, or its wait. A promise stands nowhere.
--
-- @include later
-- @include count
-- @include drop
local function withdraw(k, task)
  if task.status == "RUNNING" then
    later(k, "ZREM", k.claims .. task.worker, task.id)
    count(k, task.queue, "running", -1)
  elseif task.status == "WAITING" then
    later(k, "ZREM", k.waits, task.id)
    count(k, task.queue, "waiting", -1)
  elseif task.available_at then
    later(k, "ZREM", k.delayed, task.id)
  elseif not task.role then
    later(k, "ZREM", k.ready .. task.queue, task.id)
  end
  if task.waiting then
    drop(k, task)
  end
end
