-- attempt runs a command that reads, and whose failure says something about the data: it returns the error, as
-- redis.pcall does. That the user lacks a right is raised.
--
-- @use store/refused
local function attempt(...)
  local answer = redis.pcall(...)
  if type(answer) == "table" and answer.err and refused(answer) then
    error(answer, 0)
  end
  return answer
end
