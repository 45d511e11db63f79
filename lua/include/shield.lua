-- shield is guard for a step on the wait of an agent. If the wait cannot be worked with the
-- agent's record is sound, so it keeps the clocks that end it.
--
-- @include quarantine
local function shield(k, id, at, step, ...)
  local ok, answer = pcall(step, ...)
  if ok then
    return answer
  end
  local why = type(answer) == "table" and answer.err or tostring(answer)
  quarantine(k, id, at, why, {k.waits})
  return nil, why
end
