-- options reads names and values from argument i on. It rejects a name without a value, a name that is given twice,
-- and one that is not known.
--
--   known  name: true, or "first" for an argument that is given before the names, without one
--
-- Returns name: value
--
-- @use named/nearest
-- @use named/reject
-- @use named/shown

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
