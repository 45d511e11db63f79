-- by_priority sorts a list of tables with a priority and a place: higher priorities first, then by place.
local function by_priority(list)
  table.sort(list, function(a, b)
    return a.priority > b.priority or a.priority == b.priority and a.place < b.place
  end)
end
