-- first_end returns which of some tasks ended first, and when; nil if none of them has ended.
--
-- @use store/record
-- @use store/live
local function first_end(tx, ids)
  local first, at = nil, nil
  record.load(tx, ids)
  for _, id in ipairs(ids) do
    local task = record.get(tx, id)
    local ended = task and task.status and not live(task) and tonumber(task.completed_at)
    if ended and (not at or ended < at) then
      first, at = id, ended
    end
  end
  return first, at
end
