-- put adds a name and its value to a list, if there is a value.
local function put(list, name, value)
  if value then
    list[#list + 1] = name
    list[#list + 1] = value
  end
end
