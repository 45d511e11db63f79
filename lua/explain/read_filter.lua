-- read_filter reads a filter (explain/matches.lua) from the arguments of a call, from one of them on. It raises if they
-- are not valid.
--
-- @use check/whole
local known = " kind queue owner status timed_out since before error "
local instants = {since = true, before = true}

local function read_filter(argv, from)
  local filter = {}
  for i = from, #argv, 2 do
    local name, value = argv[i], argv[i + 1]
    local one = string.find(name, "^[%a_]+$") and string.find(known, " " .. name .. " ", 1, true)
    if not one or not value or value == "" or instants[name] and not whole(value) then
      error("argument " .. i .. " must be a name of a filter, and its value must follow", 0)
    end
    filter[name] = instants[name] and tonumber(value) or value
  end
  if filter.status then
    filter.statuses = {}
    for status in string.gmatch(filter.status, "%u+") do
      filter.statuses[status] = true
    end
  end
  return filter
end
