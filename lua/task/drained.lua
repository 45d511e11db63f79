-- drained returns the instant at which a task ended, if not all of its children have ended yet; nil for any other
-- task. It also returns nil if the clock `draining` is of the wrong type, since that is no fault of the task.
--
-- @use store/attempt
-- @use store/own
-- @use store/record
-- @use store/live
local function drained(tx, id)
  local ended = tx.drained[id]
  if ended == nil then
    local score = attempt("ZSCORE", tx.key.draining, id)
    ended = type(score) == "string" and tonumber(score) or false
    local task = ended and record.get(tx, id)
    if task and live(task) then -- the record says otherwise, and the record decides
      ended = false
    end
    own(tx, "drained")[id] = ended
  end
  return ended or nil
end
