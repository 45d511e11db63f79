-- nearest is the next instant at which something happens to a live task that is not its deadline: the
-- limit of its line or attempt, its warning, the end of the grace of its cancellation. nil: nothing does.
local function nearest(task)
  local first = tonumber(task.limit_at or nil)
  local warn, grace = tonumber(task.warn_at or nil), tonumber(task.grace_at or nil)
  if warn and not (first and first <= warn) then
    first = warn
  end
  if grace and not (first and first <= grace) then
    first = grace
  end
  return first
end
