-- put_fields adds some fields of a hash to a list. It returns the fields by name.
--
-- @use explain/ask
-- @use explain/put
local function put_fields(list, key, names)
  local values, found = ask("HMGET", key, unpack(names)) or {}, {}
  for i, name in ipairs(names) do
    found[name] = values[i] or nil
    put(list, name, found[name])
  end
  return found
end
