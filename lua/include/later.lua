-- later puts off ZADD and ZREM until flush, so that a batch costs one command a
-- set and not one a task. Safe because the record decides, never the set: who
-- finds an id in a set looks at its record first.
local function later(k, command, key, a, b)
  local sets = k[command]
  if not sets then
    sets = {}
    k[command] = sets
  end
  local list = sets[key]
  if not list then
    list = {}
    sets[key] = list
  end
  list[#list + 1] = a
  if b then
    list[#list + 1] = b
  end
end
