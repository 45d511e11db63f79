-- put adds a name and what is known of it to a list.
local function put(list, name, value)
  if value then
    list[#list + 1] = name
    list[#list + 1] = value
  end
end
