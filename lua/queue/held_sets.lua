-- held_sets returns the sets of held tasks of each queue: what follows held: in the names of their keys (store/state.lua: set_of).
local function held_sets(tx)
  local of = {}
  for _, set in ipairs(redis.call("ZRANGE", tx.key.holds, 0, -1)) do
    local queue = string.match(set, "^[^,]*")
    of[queue] = of[queue] or {}
    table.insert(of[queue], set)
  end
  return of
end
