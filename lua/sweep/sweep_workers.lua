-- sweep_workers gives back the claims of a worker whose lease is over, in chunks.
--
-- @use store/attempt
-- @use store/index
-- @use store/later
-- @use store/record
-- @use sweep/did
-- @use sweep/met_broken
-- @use task/give_back
-- @use task/put_aside
local function sweep_workers(tx, r, worker, clock)
  local claims = tx.key.claims .. worker
  local ids = attempt("ZREVRANGE", claims, 0, r.batch - 1) -- newest first: each goes to the front of its line
  if ids.err then
    put_aside(tx, worker, ids.err, {})
    tx.recount = true
    met_broken(tx, r, clock, worker, ids.err)
    return
  end
  record.load(tx, ids)
  for _, id in ipairs(ids) do
    local held, why = give_back(tx, id, worker, true)
    if held then
      did(r, "given_back")
    elseif why then
      met_broken(tx, r, claims, id, why)
    end
  end
  if #ids == r.batch then
    r.full = true
  else
    index.remove(tx, clock, worker)
    later.after(tx, "DEL", claims, tx.key.worker .. worker)
  end
end
