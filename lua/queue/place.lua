-- place gives a task a place in line. Priority 3 goes first, then whoever came first. A task that was
-- given back goes to the front of its priority: it has waited before. An agent that was woken goes
-- before that, and among those the one that woke first.
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
    n = n - 281474976710656 -- 2^48: before all others of its priority, in the order they woke
  end
  -- 2^50 places a priority: exact in a double, and years of work.
  local band = (3 - (tonumber(priority or 0) or 0)) * 1125899906842624
  local add = how == "new" and index.add_new or index.add
  add(tx, tx.key.ready .. queue, string.format("%d", band + n), id)
  own(tx, "wakes")[queue] = true
end
