-- options reads names and values from argument i on. It rejects a name without a value, a name that is given twice,
-- and one that is not known.
--
--   known  name: true, or "first" for an argument that is given before the names, without one
--
-- Returns name: value
--
-- @use named/reject
-- @use named/shown

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

-- nearest returns the known name that is most like a misspelt one, or nil.
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

-- unknown rejects a name. what begins the sentence: "" or "task 3: ".
local function unknown(name, known, what)
  local near, all = nearest(name, known), {}
  for other, how in pairs(known) do
    if how ~= "first" then
      all[#all + 1] = other
    end
  end
  table.sort(all)
  reject("INVALID", what .. shown(name) .. " is not a known name: " ..
    (near and "did you mean " .. near .. "?" or all[1] and "use " .. table.concat(all, ", ") or "this function takes none"))
end

local options = {}

function options.check(name, given, known, what)
  if not known[name] then
    unknown(name, known, what)
  elseif known[name] == "first" then
    reject("INVALID", what .. name .. " comes first, without a name")
  elseif given[name] then
    reject("INVALID", what .. name .. " is given twice")
  end
end

function options.read(argv, i, known)
  local given = {}
  for j = i, #argv, 2 do
    options.check(argv[j], given, known, "")
    if not argv[j + 1] then
      reject("INVALID", argv[j] .. " has no value: give names and values in pairs")
    end
    given[argv[j]] = argv[j + 1]
  end
  return given
end
