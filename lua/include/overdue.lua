-- overdue reads a task and ends it first if its time is up. Every script that
-- touches a task begins with it, so what is late is late though no reaper ran.
--
-- @include record
-- @include live
-- @include ending
-- @include finish
local function overdue(k, id, at)
  local task = record(k, id)
  if live(task) then
    local over = ending(k, task, at)
    if over then
      finish(k, task, over, at)
    end
  end
  return task
end
