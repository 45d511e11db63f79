-- is_due tells whether something that is due by an instant stands on a clock still. On one that cannot be read
-- nothing is: that is no fault of whoever asks.
--
-- @use store/attempt
-- @use store/index
local function is_due(tx, clock, instant)
  local some = attempt("ZRANGEBYSCORE", clock, "-inf", string.format("%d", instant), "LIMIT", 0, index.removals(tx, clock) + 1)
  for _, id in ipairs(some) do
    if not index.removed(tx, clock, id) then
      return true
    end
  end
end
