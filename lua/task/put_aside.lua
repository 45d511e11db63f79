-- put_aside takes an id whose record cannot be worked with off every clock, so that it stops nobody
-- else, and keeps it in broken for whoever mends it. A call tells of it once, though it may meet it again on
-- further clocks.
--
--   clocks  to take it off, if not all: then its record still says whether it runs
--
-- The running tasks are counted anew when an id comes into broken, and not again while it is there: whoever mends
-- a record takes its id out.
--
-- @use store/attempt
-- @use store/index
-- @use store/emit
-- @use store/escape
-- @use store/own
local function put_aside(tx, id, why, clocks)
  local key = tx.key
  for _, clock in ipairs(clocks or {key.deadlines, key.limits, key.delayed, key.waits, key.draining, key.retained}) do
    index.remove(tx, clock, id)
  end
  if tx.aside[id] or tx.put_aside[id] then
    return
  end
  own(tx, "aside")[id] = true
  tx.recount = tx.recount or not clocks and type(attempt("ZSCORE", key.broken, id)) ~= "string"
  index.add(tx, key.broken, tx.now, id)
  emit(tx, "terminal", "task_broken", {id = escape(id)}, "error=" .. escape(why))
end
