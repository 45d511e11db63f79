-- later puts off ZADD and ZREM until flush, so that a batch costs one command a
-- set and not one a task. Safe because the record decides, never the set: who
-- finds an id in a set looks at its record first.
--
--   score  of ZADD, as text; absent for ZREM
local function later(k, command, key, id, score)
  local list = k[command][key]
  if not list then
    list = {n = 0}
    k[command][key] = list
  end
  local n = list.n
  if score then
    list[n + 1] = score
    n = n + 1
  end
  list[n + 1] = id
  list.n = n + 1
end
