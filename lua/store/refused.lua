-- refused reports whether an error means that the user lacks a right. Such an error does not blame any data, so no task
-- is put aside for it: the caller raises it before anything is written.
local function refused(why)
  why = type(why) == "table" and why.err or tostring(why)
  return string.find(why, "NOPERM", 1, true) ~= nil or string.find(why, "The user executing the script can't", 1, true) ~= nil or
    string.find(why, "ACL failure in script", 1, true) ~= nil
end
