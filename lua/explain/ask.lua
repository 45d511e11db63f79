-- ask reads, and has false for a key of the wrong type: whoever asks why something stands still needs an answer
-- most when something is broken.
local function ask(...)
  local answer = redis.pcall(...)
  if type(answer) == "table" and answer.err then
    return false
  end
  return answer
end
