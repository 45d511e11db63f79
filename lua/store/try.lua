-- try runs a command whose failure must not stop the rest of the call. If the command fails, try returns nil, and
-- the call raises the error at its end (tx.failed, store/answer.lua).
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
