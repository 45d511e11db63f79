-- flow_defaults reads the defaults that a definition gives the kind of its runs: name, value, … from an argument on. It
-- returns them by field; or nil, the field that is wrong, and why.
--
-- @use check/fields
-- @use check/kind_defaults
local function flow_defaults(argv, first)
  local given = {}
  for i = first, #argv, 2 do
    local name, value = argv[i], argv[i + 1] or ""
    local why = kind_defaults.one(name, value, given)
    if why then
      return nil, name, why
    end
    given[name] = value
  end
  local field, why = fields(given)
  if field then
    return nil, field, why
  end
  return given
end
