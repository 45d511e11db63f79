-- overdue reads a task and ends it, or its attempt, first if its time is up. Every
-- script that touches a task begins with it, so what is late is late though no reaper
-- ran.
--
-- @include record
-- @include live
-- @include ending
-- @include attempted
-- @include finish
-- @include attempt_failed
local function overdue(k, id, at)
  local task = record(k, id)
  if live(task) then
    local over = ending(k, task, at)
    if over then
      finish(k, task, over, at)
    elseif task.limit_at and tonumber(task.limit_at) < at and attempted(task) then
      attempt_failed(k, task, at, {class = "timeout", since = tonumber(task.limit_at), code = ""})
    end
  end
  return task
end
