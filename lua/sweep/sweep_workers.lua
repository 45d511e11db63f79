-- sweep_workers gives back what a worker held whose lease is over, in chunks.
--
-- @use store/attempt
-- @use store/index
-- @use store/later
-- @use store/record
-- @use sweep/did
-- @use sweep/met_broken
-- @use task/load_task
-- @use task/put_aside
-- @use task/return_claim
local function sweep_workers(tx, r, worker, clock)
  local claims = tx.key.claims .. worker
  local ids = attempt("ZREVRANGE", claims, 0, r.batch - 1) -- so the oldest ends up in front
  if ids.err then
    put_aside(tx, worker, ids.err, {})
    met_broken(tx, r, clock, worker, ids.err)
    return
  end
  record.load(tx, ids)
  for _, id in ipairs(ids) do
    tx.on = id
    local task = load_task(tx, id)
    if task and task.status == "RUNNING" and task.worker == worker then
      return_claim(tx, task, true)
      did(r, "given_back")
    end
    index.remove(tx, claims, id)
    tx.recount = tx.recount or task and not task.status
  end
  if #ids == r.batch then
    r.full = true
  else
    index.remove(tx, clock, worker)
    later.after(tx, "DEL", claims, tx.key.worker .. worker)
  end
end
