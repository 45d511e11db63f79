-- counts_as returns how a wait counts an ended member: "o" ok, "b" bad, "n" neither. The mask has a letter
-- for each way to end: completed, error, failed (no retry), timeout, cancelled. A task whose on_deadline is fail
-- counts as failed when its own time is up; its error says so (task/timed_out.lua).
local function counts_as(mask, task)
  local place, reason = 2, task.reason
  if task.status == "COMPLETED" then
    place = 1
  elseif task.status == "CANCELLED" then
    place = 5
  elseif reason == "failed" or task.timeout_type and task.error == "Workflow exceeded timeout" then
    place = 3
  elseif reason == "timeout" then
    place = 4
  end
  return string.sub(mask, place, place)
end
