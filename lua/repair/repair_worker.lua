-- repair_worker gives a worker without a lease one of a minute: time for a heartbeat of a worker that lives.
--
-- @use repair/mend
local function repair_worker(tx, r, worker)
  if not mend.has(tx, "workers", worker) then
    mend.must(tx, r, "workers", worker, tx.at + 60000)
  end
end
