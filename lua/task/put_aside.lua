-- put_aside removes an id whose record cannot be used from every clock, so that it stops no other task, and keeps it
-- in `broken` for repair. A call reports it once, even if it meets the id again on further clocks.
--
--   clocks  the clocks to remove it from; nil: all of them. If given, the record still says whether the task runs
--
-- Running tasks are counted again when an id enters `broken`, and not while the id stays there. The operator who
-- repairs the record removes its id.
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
