-- watch_wait schedules the sweep of a wait for when its limit, or the nearest limit of a member, is over.
--
--   ends  the limit of the wait, or nil   patience  the nearest limit of a member, or nil
--
-- Returns the instant, or nil
--
-- @use store/index
local function watch_wait(tx, id, ends, patience)
  local first = ends
  if patience and not (first and first <= patience) then
    first = patience
  end
  if first then
    index.add(tx, tx.key.waits, string.format("%d", first), id)
  else
    index.remove(tx, tx.key.waits, id)
  end
  return first
end
