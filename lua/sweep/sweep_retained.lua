-- sweep_retained removes the record of an ended task when its retention is over. A sweep also has a limit in bytes: to
-- free a megabyte takes as long as to end ten tasks.
--
-- @use store/index
-- @use store/record
-- @use sweep/did
-- @use sweep/met_broken
-- @use task/drained
-- @use task/hooked
-- @use store/live
-- @use task/put_aside
-- @use task/remove_record
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
  elseif task.children and drained(tx, id) or hooked(tx, task) then
    index.add(tx, clock, string.format("%d", tx.at + 1000), id) -- its children or its hook still need it
    return
  end
  if task.status and not live(task) then
    r.bytes = r.bytes + remove_record(tx, task)
    did(r, "removed")
  end
  index.remove(tx, clock, id)
end
