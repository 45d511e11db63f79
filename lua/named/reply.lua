-- Replies of the functions for other languages.
--
-- @use named/options: reject
-- @use store/try: reason, refused

-- plain returns the reply of a call without its reports of other tasks (store/tell.lua): callers of the façade write no log.
local function plain(reply)
  return reply[1] == "told" and reply[3] or reply
end

-- words maps patterns in the error of a call to the word of the reply.
local words = {{" is not a namespace: ", "NAMESPACE"}, {"^NEWER ", "NAMESPACE"}, {"^OLDER ", "NAMESPACE"}, {"^BROKEN ", "BROKEN"}}

-- reply runs a function of the façade. An error becomes an error reply, because every client raises those: "CURFEW WORD
-- sentence" if the function rejects its arguments, and NOPERM if the user lacks a right. Other errors of Redis are not changed.
local function reply(run, keys, argv)
  local ok, answer = pcall(run, keys, argv)
  if ok then
    return answer
  elseif type(answer) == "table" and answer.curfew then
    return redis.error_reply("CURFEW " .. answer.curfew .. " " .. answer.sentence)
  end
  local text = reason(answer)
  if refused(answer) and not string.find(text, "^NOPERM ") then
    return redis.error_reply("NOPERM this user lacks a right that the function needs: the operator gives the rights of its role")
  end
  for _, word in ipairs(words) do
    if string.find(text, word[1]) then
      return redis.error_reply("CURFEW " .. word[2] .. " " .. (string.gsub(text, "^%u+ ", "")))
    end
  end
  if type(answer) == "table" then
    return answer
  end
  return redis.error_reply(string.find(text, "^%u+ ") and text or "ERR " .. text)
end

-- settled returns the reply of curfew_cancel, curfew_resolve and curfew_signal.
--
--   answer  {"OK", status} or {"ALREADY", status, note} or a refusal
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
