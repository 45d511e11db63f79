-- number returns argument i: how many items follow, each of `each` arguments. It raises an error if the argument
-- is not a number, or if fewer arguments follow.
local function number(argv, i, each, what)
  local n = argv[i] and #argv[i] < 10 and string.find(argv[i], "^%d+$") and tonumber(argv[i])
  if not n or n * each > #argv - i then
    error("argument " .. i .. " must be the number of " .. what .. " that follow it", 0)
  end
  return n
end
