-- check_outcome returns the field of an outcome that is wrong, and why; nil if the outcome is well formed.
--
-- @use check/whole
local classes = {error = true, failed = true, timeout = true, deadline = true}
local verdicts = {[""] = true, retry = true, fail = true}

local function check_outcome(o)
  if o.delay ~= "" and not whole(o.delay, 0, 4503599627370496) then
    return "delay", "must be a whole number of ms, or empty"
  elseif o.verb == "fail" and not classes[o.class] then
    return "class", "must be error, failed, timeout or deadline"
  elseif o.code ~= "" and (not string.find(o.code, "^-?%d+$") or #o.code > 20) then
    return "code", "must be a whole number, or empty"
  elseif not verdicts[o.verdict] and (#o.verdict > 1024 or not string.find(o.verdict, "^fail: [^\n]+$")) then
    return "verdict", "must be empty, retry, fail, or fail: with a reason on one line of up to 1024 bytes"
  end
end
