-- drained is the instant at which a task ended whose children are not all ended yet, nil for any other
-- task. A clock of the wrong type must not be a reason to give up the tasks that are looked up in it.
--
-- @use store/attempt
-- @use store/own
-- @use store/record
-- @use task/live
local function drained(tx, id)
  local ended = tx.drained[id]
  if ended == nil then
    local score = attempt("ZSCORE", tx.key.draining, id)
    ended = type(score) == "string" and tonumber(score) or false
    local task = ended and record.get(tx, id)
    if task and live(task) then -- an entry that nothing stands behind
      ended = false
    end
    own(tx, "drained")[id] = ended
  end
  return ended or nil
end
