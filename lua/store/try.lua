-- Commands that may fail, and errors that say why.

-- try runs a command whose failure must not stop the rest of the call. If the command fails, try returns nil, and
-- the call raises the error at its end (store/tell.lua).
local function try(tx, ...)
  local answer = redis.pcall(...)
  if type(answer) == "table" and answer.err then
    local failed = tx.reply.failed
    failed[#failed + 1] = answer.err
    return nil
  end
  return answer
end

-- refused reports whether an error means that the user lacks a right. Such an error does not blame any data, so no task
-- is put aside for it: the caller raises it before anything is written.
local function refused(why)
  why = type(why) == "table" and why.err or tostring(why)
  return string.find(why, "NOPERM", 1, true) ~= nil or string.find(why, "The user executing the script can't", 1, true) ~= nil or
    string.find(why, "ACL failure in script", 1, true) ~= nil
end

-- attempt runs a command that reads, where a failure says something about the data. It returns the error, as
-- redis.pcall does. If the user lacks a right, it raises.
local function attempt(...)
  local answer = redis.pcall(...)
  if type(answer) == "table" and answer.err and refused(answer) then
    error(answer, 0)
  end
  return answer
end

-- reason returns the text of an error that pcall has caught, without the position in front of it. That position is
-- a line of the composed library, which no reader can look up.
local function reason(err)
  local text = type(err) == "table" and err.err or tostring(err)
  return (string.gsub(text, "^@?[%a_<>]*: ?%d+: ", "")) -- user_function:12: or, on other servers, <string>:12: and :12:
end
