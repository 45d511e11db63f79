-- now is the server's time in ms. A script reads it once and passes it on: it
-- moves inside a script, and two readings could disagree on whether a task is late.
local function now()
  local t = redis.call("TIME")
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
