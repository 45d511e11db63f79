-- cancelled is the end of a task that somebody cancelled.
local function cancelled(reason, fields)
  return {status = "CANCELLED", reason = "cancelled", fields = fields,
    error = reason and reason ~= "" and reason or "Task cancelled"}
end
