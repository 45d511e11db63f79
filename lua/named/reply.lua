-- reply runs a function of the façade. An error that it raises becomes an error reply: "CURFEW WORD sentence" if the
-- function rejects its arguments; NOPERM if the user lacks a right. Other errors of Redis are not changed.
--
-- @use store/reason
-- @use store/refused

-- words maps a piece of the text of a call's error to the word of the reply.
local words = {{" is not a namespace: ", "NAMESPACE"}, {"^NEWER ", "NAMESPACE"}, {"^OLDER ", "NAMESPACE"}, {"^BROKEN ", "BROKEN"}}

local function reply(run, keys, argv)
  local ok, answer = pcall(run, keys, argv)
  if ok then
    return answer
  elseif type(answer) == "table" and answer.curfew then
    return redis.error_reply("CURFEW " .. answer.curfew .. " " .. answer.says)
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
