-- settled returns the reply of a function that ends a task from outside.
--
--   answer  {"OK", status} or {"ALREADY", status, note} or a refusal
--
-- @use named/reject
local function settled(id, answer)
  local word = answer[1]
  if word == "MISSING" then
    reject("MISSING", "there is no task " .. id)
  elseif word == "BROKEN" then
    reject("BROKEN", id .. ": " .. answer[2])
  elseif word == "INVALID" then
    reject("INVALID", answer[2] .. " " .. answer[3])
  elseif word == "OWNER" then
    reject("OWNER", "the agent " .. answer[2] .. (answer[3] == "" and " does not exist" or " has ended: it is " .. answer[3]))
  elseif word == "TAKEN" then
    reject("TAKEN", "the id " .. answer[2] .. " belongs to another task")
  end
  local words = {"id", id, "status", answer[2], "changed", word == "ALREADY" and "0" or "1"}
  if word == "ALREADY" then
    words[7], words[8] = answer[2] == "COMPLETED" and "result" or "error", answer[3]
  end
  return words
end
