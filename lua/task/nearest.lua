-- nearest returns the next instant at which something other than the deadline falls due for a live task: the limit of
-- its line or attempt, its warning, or the end of its cancellation's grace. It returns nil if the task has no such instant.
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
