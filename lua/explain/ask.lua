-- ask runs a command that reads. It returns false if the command fails, for example on a key of the wrong type: a
-- reader needs an explanation most when something is broken.
local function ask(...)
  local answer = redis.pcall(...)
  if type(answer) == "table" and answer.err then
    return false
  end
  return answer
end
