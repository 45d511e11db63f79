-- drains is the instant at which a task ended whose children are not all ended yet,
-- nil for any other. A clock of the wrong type must not be a reason to give up the
-- tasks that are looked up in it. A batch asks for one owner many times, so the answer is
-- kept; who changes the clock forgets it.
local function drains(k, id)
  local ended = k.drained[id]
  if ended == nil then
    ended = redis.pcall("ZSCORE", k.draining, id)
    ended = type(ended) == "string" and tonumber(ended) or false
    k.drained[id] = ended
  end
  return ended or nil
end
