-- body returns the result or error of an ended task, or "".
--
-- @use store/try
local function body(tx, task)
  if task.body_bytes then
    return try(tx, "GET", tx.key.result .. task.id) or ""
  end
  return task.result or task.error or ""
end
