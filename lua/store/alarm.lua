-- alarm tells the reaper of an instant at which something falls due, if that is sooner than it would
-- look.
local alarm = {}

function alarm.note(tx, instant)
  if not tx.earliest or instant < tx.earliest then
    tx.earliest = instant
  end
end

-- ring is the instant that the reaper must be told of; nil if it looks soon enough by itself.
function alarm.ring(tx)
  local first, armed = tx.earliest, tx.root.armed
  if first and not (armed and armed <= first) then
    return string.format("%d", first)
  end
end
