-- retention returns how many ms the record of an ended task is kept. It is at least 60 s, since a caller can repeat a
-- call for 30 s and must find the record.
local function retention(task)
  return math.max(tonumber(task.retention_ms or task.status == "COMPLETED" and 900000 or 604800000), 60000)
end
