-- by_end sorts members by the instant they ended; those of one instant by their place.
local function by_end(members)
  table.sort(members, function(a, b)
    return a.ended < b.ended or a.ended == b.ended and a.place < b.place
  end)
end
