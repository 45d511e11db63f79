-- later puts off ZADD and ZREM until flush, so that a batch costs one command a
-- set and not one a task. Safe because the record decides, never the set: who
-- finds an id in a set looks at its record first.
--
-- What one script puts off for a set is written in the order it was put off, so the
-- last word on an id holds.
--
--   score  of ZADD, as text; absent for ZREM
local function later(k, command, key, id, score)
  local run = k.run[key]
  if not run or run.command ~= command then
    run = {command = command, key = key, n = 0}
    k.run[key] = run
    k.runs[#k.runs + 1] = run
  end
  local n = run.n
  if score then
    run[n + 1] = score
    n = n + 1
  end
  run[n + 1] = id
  run.n = n + 1
end
