-- root_of returns the one key of a function of the façade, the root of a partition.
--
-- @use named/clip
-- @use named/reject
local function root_of(keys)
  local root = keys[1]
  if #keys ~= 1 then
    reject("INVALID", "give one key, the root of a partition, such as curfew:{0}; there are " .. #keys)
  end
  local namespace, partition = string.match(root, "^(%w[%w._:-]*):{(%d+)}$")
  if not namespace or #namespace > 128 or #partition > 3 or tonumber(partition) > 998 or string.find(partition, "^0%d") then
    reject("INVALID", 'the key "' .. clip(root) .. '" is not the root of a partition: use a name, a colon and the number in braces, such as curfew:{0}')
  end
  return root, namespace
end
