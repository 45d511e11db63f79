-- setting says what is wrong with a setting of a namespace, or returns nil.
--
-- @use check/whole
local choices = {
  events = {all = true, terminal = true, none = true, why = "must be all, terminal or none"},
  figures = {on = true, off = true, why = "must be on or off"},
}

local function setting(name, value)
  if name == "event_mib" then
    return not whole(value, 1, 65536) and "must be a whole number from 1 to 65536" or nil
  elseif not choices[name] then
    return "is not a setting of a namespace"
  end
  return choices[name][value] ~= true and choices[name].why or nil
end
