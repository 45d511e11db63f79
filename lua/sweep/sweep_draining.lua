-- sweep_draining ends the children of an ended task, in chunks. A sweep takes owners until it has ended a chunk of
-- children.
--
-- @use store/attempt
-- @use store/index
-- @use store/later
-- @use store/own
-- @use store/record
-- @use sweep/did
-- @use sweep/met_broken
-- @use store/live
-- @use task/load_task
-- @use task/put_aside
-- @use task/schedule_removal

-- close ends a child of an ended owner. If the child ended earlier, its retention begins.
local function close(tx, r, id)
  local child, why = record.get(tx, id)
  if not child then
    put_aside(tx, id, why)
  elseif live(child) then
    load_task(tx, id)
    did(r, "drained")
  elseif child.status and not redis.call("ZSCORE", tx.key.retained, id) then
    schedule_removal(tx, child)
  end
end

local function sweep_draining(tx, r, id, clock)
  r.full = true
  if r.chunk == 0 then
    return
  end
  local key = tx.key.children .. id
  local ids = attempt("LRANGE", key, 0, r.chunk - 1)
  if ids.err then
    put_aside(tx, id, ids.err)
    met_broken(tx, r, clock, id, ids.err)
    return
  end
  local owner = record.get(tx, id)
  if owner and live(owner) then -- the entry is wrong
    index.remove(tx, clock, id)
    return
  end
  record.load(tx, ids)
  for _, child in ipairs(ids) do
    tx.on = child
    close(tx, r, child)
  end
  later.after(tx, "LTRIM", key, #ids, -1)
  if #ids < r.chunk then
    index.remove(tx, clock, id)
    own(tx, "drained")[id] = false
  end
  r.chunk = r.chunk - #ids
end
