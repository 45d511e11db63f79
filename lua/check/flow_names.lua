-- flow_names checks the id and the version of a definition. It returns the field that is wrong and why, or nil.
local function flow_names(id, version)
  if not id or #id > 64 or not string.find(id, "^%a[%w_-]*$") then
    return "id", "must be 1 to 64 of A-Z a-z 0-9 _ - and begin with a letter"
  elseif version ~= "" and (not version or #version > 64 or not string.find(version, "^%w[%w._-]*$")) then
    return "version", "must be 1 to 64 of A-Z a-z 0-9 . _ - and begin with a letter or digit"
  end
end
