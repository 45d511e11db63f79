-- nearest returns the known name that is most like a misspelt one, or nil.

-- distance returns how many letters must be added, dropped or changed.
local function distance(a, b)
  local row = {}
  for j = 0, #b do
    row[j] = j
  end
  for i = 1, #a do
    local diagonal = row[0]
    row[0] = i
    for j = 1, #b do
      local changed = diagonal + (string.byte(a, i) == string.byte(b, j) and 0 or 1)
      diagonal = row[j]
      row[j] = math.min(changed, row[j] + 1, row[j - 1] + 1)
    end
  end
  return row[#b]
end

local function nearest(name, known)
  local best, least = nil, math.max(1, math.floor((#name + 1) / 3)) + 1
  if #name > 64 then
    return nil
  end
  for other in pairs(known) do
    local d = distance(string.lower(name), other)
    if d < least or d == least and best and other < best then
      best, least = other, d
    end
  end
  return best
end
