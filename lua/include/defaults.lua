-- defaults are what the tasks of a kind have where their producer says nothing
-- (define.lua), by field.
--
-- @include write
local function defaults(k, kind)
  local known = k.defaults[kind]
  if not known then
    known = write(k, "HGET", k.root, "kind:" .. kind)
    known = type(known) == "string" and known or ""
  end
  if type(known) == "string" then
    local text = known
    known = {}
    for name, value in string.gmatch(text, "([%w_]+)=([^\n]*)") do
      known[name] = value
    end
    k.defaults[kind] = known
  end
  return known
end
