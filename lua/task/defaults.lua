-- defaults returns the defaults of a kind (call/define.lua), by field: what its tasks get where their producer gives
-- nothing.
local function defaults(tx, kind)
  local known = tx.root.defaults[kind]
  if known == nil then
    known = redis.call("HGET", tx.key.root, "kind:" .. kind) or ""
  end
  if type(known) == "string" then
    local text = known
    known = {}
    for name, value in string.gmatch(text, "([%w_]+)=([^\n]*)") do
      known[name] = value
    end
    tx.root.defaults[kind] = known
  end
  return known
end
