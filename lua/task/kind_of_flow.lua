-- kind_of_flow makes the newest version of a flow set the defaults of the kind of its runs, and takes back those that the
-- version before it set. Defaults that others have set stay. The root keeps the number of the version, and its defaults.
--
--   n      number of the version. If a later one, or the same, was here before, nothing changes
--   given  the defaults of the version, by field
--
-- Returns the field that would not fit to the others, and why; or nil
--
-- @use check/fields: kind_defaults
-- @use store/later
-- @use task/create: defaults, read_defaults

-- lines writes fields as the root has them.
local function lines(fields)
  local all = {}
  for name, value in pairs(fields) do
    all[#all + 1] = kind_defaults.line(name, value)
  end
  table.sort(all)
  return table.concat(all, "\n")
end

local function kind_of_flow(tx, id, n, given)
  local said = redis.call("HGET", tx.key.root, "flow:" .. id) or "0"
  if tonumber(string.match(said, "^%d+")) >= n then
    return nil
  end
  local kind, all = "flow." .. id, {}
  for name, value in pairs(defaults(tx, kind)) do
    all[name] = value
  end
  for name, value in pairs(read_defaults(said)) do
    if all[name] == value then
      all[name] = nil
    end
  end
  for name, value in pairs(given) do
    all[name] = value
  end
  local field, why = kind_defaults.together(all)
  if field then
    return field, "of the kind " .. kind .. " " .. why
  end
  later.after(tx, "HSET", tx.key.root, "flow:" .. id, n .. "\n" .. lines(given))
  if next(all) then
    later.after(tx, "HSET", tx.key.root, "kind:" .. kind, lines(all))
  else
    later.after(tx, "HDEL", tx.key.root, "kind:" .. kind)
  end
end
