-- is_due reports whether a clock still has an entry that is due by an instant. A clock that cannot be read has none:
-- the caller is not at fault.
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
