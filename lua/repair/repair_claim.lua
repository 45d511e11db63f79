-- repair_claim puts a RUNNING task among the claims of its worker, and gives the worker a lease if it has none: a reaper
-- gives the task back unless the worker sends a heartbeat. Any other task is removed from the claims of its last worker.
--
-- The score is between those of the worker's last two fetches: no fetch that is repeated returns the task, and no heartbeat
-- that was sent before the last fetch was answered gives it back.
--
-- @use store/index
-- @use repair/mend
-- @use repair/repair_worker
local function repair_claim(tx, r, task)
  local worker = task.worker
  if task.status ~= "RUNNING" then
    if worker then
      mend.must(tx, r, "claims:" .. worker, task.id)
    end
    return
  end
  if not mend.has(tx, "claims:" .. worker, task.id) then
    local newest = tonumber(redis.call("HGET", tx.key.worker .. worker, "seq") or nil) or 0
    index.add(tx, tx.key.claims .. worker, string.format("%.1f", newest - 0.5), task.id)
    r[#r + 1] = "add to claims:" .. worker
  end
  repair_worker(tx, r, worker)
end
