-- try runs a command whose failure must not stop the rest of the call. It returns nil where the command
-- fails, and the call tells of it in the end (tx.failed).
--
-- @use store/own
local function try(tx, ...)
  local answer = redis.pcall(...)
  if type(answer) == "table" and answer.err then
    local failed = own(tx, "failed")
    failed[#failed + 1] = answer.err
    return nil
  end
  return answer
end
