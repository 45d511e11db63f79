-- write makes a write that comes after others of the same transition, so that it
-- must not stop the rest: where it cannot be made, flush tells.
local function write(k, ...)
  local answer = redis.pcall(...)
  if type(answer) == "table" and answer.err then
    k.failed = k.failed or answer.err
    return 0
  end
  return answer
end
