-- withdraw takes a live task out of wherever its status has put it: its line,
-- the delayed ones, or its worker's claims. A promise stands nowhere.
--
-- @include later
-- @include count
local function withdraw(k, task)
  if task.status == "RUNNING" then
    later(k, "ZREM", k.claims .. task.worker, task.id)
    count(k, task.queue, "running", -1)
  elseif task.available_at then
    later(k, "ZREM", k.delayed, task.id)
  elseif not task.role then
    later(k, "ZREM", k.ready .. task.queue, task.id)
  end
end
