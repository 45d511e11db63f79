-- node_field returns the field that counts what a new field would count. A hash with 10,000 fields gets no field for
-- another node of a flow: those nodes share the name "-". All other fields are as they were given.
--
-- @use store/try
local most_fields = 10000

local function node_field(tx, key, field)
  local what = string.match(field, "^- node %S+ (.+)$")
  if what and (try(tx, "HLEN", key) or most_fields) >= most_fields then
    return "- node - " .. what
  end
  return field
end
