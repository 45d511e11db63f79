-- @use store/try: attempt

-- held_sets returns the sets of held tasks of each queue, each set as store/state.lua: set_of names it. If the list of sets cannot be
-- read, there are none.
local function held_sets(tx)
  local sets, of = attempt("ZRANGE", tx.key.holds, 0, -1), {}
  for _, set in ipairs(sets.err and {} or sets) do
    local queue = string.match(set, "^([^,]+),[^,]")
    if queue then
      of[queue] = of[queue] or {}
      table.insert(of[queue], set)
    end
  end
  return of
end
