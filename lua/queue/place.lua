-- place puts a task in line. Priority 3 is first; within a priority, tasks are in the order they came. A task that
-- was given back is at the front of its priority, since it has waited before. Woken agents come before these, in the
-- order they woke.
--
--   how  "new", "woken", "front" or nil
--
-- @use store/index
-- @use store/own
local function place(tx, id, queue, priority, how)
  local n
  if how == "front" then
    n = (tx.front or tx.root.front) - 1
    tx.front = n
  else
    n = (tx.seq or tx.root.seq) + 1
    tx.seq = n
  end
  if how == "woken" then
    n = n - 281474976710656 -- 2^48: before all other places
  end
  -- 2^50 places for each priority: exact in a double, and enough for years.
  local band = (3 - (tonumber(priority or 0) or 0)) * 1125899906842624
  local add = how == "new" and index.add_new or index.add
  add(tx, tx.key.ready .. queue, string.format("%d", band + n), id)
  own(tx, "wakes")[queue] = true
end
