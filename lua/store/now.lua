-- now returns the server's time in ms. A call reads it once: the time moves while a call runs, and two readings
-- could disagree on whether a task is late. _root is for the clock of a test, which replaces this file.
local function now(_root)
  local t = redis.call("TIME")
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
