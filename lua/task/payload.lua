-- payload returns the payload of a task. It returns nil if the payload is lost, or if its key holds something else.
--
-- @use store/attempt
local function payload(tx, task)
  if not task.payload_bytes then
    return string.sub(task.spec, task.payload_from)
  end
  local text = tx.large[task.id] or attempt("GET", tx.key.payload .. task.id)
  return type(text) == "string" and #text == tonumber(task.payload_bytes) and text or nil
end
