-- refused tells whether an error says that the user lacks a right. It is no fault of any data, so nothing is put
-- aside for it: whoever decides raises it, before anything is written.
local function refused(why)
  why = type(why) == "table" and why.err or tostring(why)
  return string.find(why, "NOPERM", 1, true) ~= nil or string.find(why, "The user executing the script can't", 1, true) ~= nil or
    string.find(why, "ACL failure in script", 1, true) ~= nil
end
