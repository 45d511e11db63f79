-- @use store/try: attempt

-- held_sets returns the sets of held tasks (store/state.lua: set_of), the one that the sweep looks at next first. If the list cannot
-- be read, there are none.
local function held_sets(tx)
  local sets = attempt("ZRANGE", tx.key.holds, 0, -1)
  return sets.err and {} or sets
end
