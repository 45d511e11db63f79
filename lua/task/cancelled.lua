-- cancelled is the end of a task that somebody cancelled.
local function cancelled(reason, call)
  return {status = "CANCELLED", reason = "cancelled", call = call,
    error = reason and reason ~= "" and reason or "Task cancelled"}
end
