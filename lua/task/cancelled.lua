-- cancelled returns the end of a cancelled task, as task/finish.lua takes it.
local function cancelled(reason, call)
  return {status = "CANCELLED", reason = "cancelled", call = call,
    error = reason and reason ~= "" and reason or "Task cancelled"}
end
