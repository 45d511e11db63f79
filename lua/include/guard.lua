-- guard does one step on one task and returns what the step returns. A step that
-- raises has met a poison record: the task is quarantined, and guard returns nil
-- and what was raised, so the other tasks of the call go on.
--
-- @include quarantine
local function guard(k, id, at, step, ...)
  local ok, answer = pcall(step, ...)
  if ok then
    return answer
  end
  local why = type(answer) == "table" and answer.err or tostring(answer)
  quarantine(k, id, at, why)
  return nil, why
end
