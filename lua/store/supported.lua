-- supported raises an error unless the namespace was opened and this library works with the version of its records.
--
--   version  the field of the root
--
-- @use store/versions
local function supported(root, version)
  local number = tonumber(version or nil)
  if not version then
    error(root .. " is not a namespace: open it first, with its number of partitions", 0)
  elseif not number then
    error(root .. " is not a namespace: it is being removed", 0)
  elseif number > versions.newest then
    error(string.format("NEWER the records have version %s, and these functions work with versions up to %d: load those of a newer release", version, versions.newest), 0)
  elseif number < versions.oldest then
    error(string.format("OLDER the records have version %s, and these functions work with versions from %d: upgrade them with a release in between",
      version, versions.oldest), 0)
  end
end
