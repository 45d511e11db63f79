-- alarm notes that something falls due at an instant; flush tells the reaper if
-- that is sooner than it would look.
local function alarm(k, instant)
  if not k.earliest or instant < k.earliest then
    k.earliest = instant
  end
end
