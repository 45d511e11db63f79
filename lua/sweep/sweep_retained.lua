-- sweep_retained removes the record of an ended task when its retention is over. A sweep also has a limit in bytes: to
-- free a megabyte takes as long as to end ten tasks.
--
-- @use store/index
-- @use store/later
-- @use store/record
-- @use sweep/did
-- @use sweep/met_broken
-- @use task/drained
-- @use task/live
-- @use task/put_aside
local function sweep_retained(tx, r, id, clock)
  if r.bytes > 16777216 then
    r.full = true
    return
  end
  local task, why = record.get(tx, id)
  if not task then
    put_aside(tx, id, why)
    met_broken(tx, r, clock, id, why)
    return
  elseif task.children and drained(tx, id) then
    index.add(tx, clock, string.format("%d", tx.at + 1000), id) -- its children still need it
    return
  end
  if task.status and not live(task) then
    local key = tx.key
    later.drop(tx, key.spec .. id)
    later.drop(tx, key.state .. id)
    later.drop(tx, key.children .. id)
    if task.payload_bytes then
      later.drop(tx, key.payload .. id)
    end
    if task.body_bytes then
      later.drop(tx, key.result .. id)
    end
    r.bytes = r.bytes + (tonumber(task.payload_bytes or nil) or 0) + (tonumber(task.body_bytes or nil) or 0)
    index.remove(tx, key.dead .. task.queue, id)
    did(r, "removed")
  end
  index.remove(tx, clock, id)
end
