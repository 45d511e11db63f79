-- drains is the instant at which a task ended whose children are not all ended yet,
-- nil for any other. A clock of the wrong type must not be a reason to give up the
-- tasks that are looked up in it.
local function drains(k, id)
  local ended = redis.pcall("ZSCORE", k.draining, id)
  return type(ended) == "string" and tonumber(ended) or nil
end
