-- first returns the first argument of a function of the façade. It comes before the names and values.
--
-- @use named/reject
local function first(argv, what)
  if not argv[1] then
    reject("INVALID", "give " .. what .. " first, then names and values")
  end
  return argv[1]
end
