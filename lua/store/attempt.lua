-- attempt runs a command that reads, where a failure says something about the data. It returns the error, as
-- redis.pcall does. If the user lacks a right, it raises.
--
-- @use store/refused
local function attempt(...)
  local answer = redis.pcall(...)
  if type(answer) == "table" and answer.err and refused(answer) then
    error(answer, 0)
  end
  return answer
end
