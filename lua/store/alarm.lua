-- alarm notifies the reaper of an instant at which something falls due, if the reaper would not sweep by then.
local alarm = {}

function alarm.note(tx, instant)
  if not tx.earliest or instant < tx.earliest then
    tx.earliest = instant
  end
end

-- ring returns the instant that the reaper must be notified of, or nil if it sweeps early enough anyway.
function alarm.ring(tx)
  local first, armed = tx.earliest, tx.root.armed
  if first and not (armed and armed <= first) then
    return string.format("%d", first)
  end
end
