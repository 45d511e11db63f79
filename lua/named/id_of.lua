-- id_of returns the id of a task from an argument. The task must belong to the partition of the key.
--
--   what  how the error begins: "task 3: "; absent: ""
--
-- @use named/clip
-- @use named/reject
local function id_of(text, root, what)
  local partition = text and #text <= 640 and string.match(text, "^(%d+)%-%w[%w._!-]*$")
  if not partition or #partition > 3 or tonumber(partition) > 998 or string.find(partition, "^0%d") then
    reject("INVALID", (what or "") .. 'the id "' .. clip(text or "") .. '" is not the id of a task: it is the partition, a dash, letters and digits, such as 0-01J9ZK3Q8X4M2C7W5T')
  end
  local mine = string.match(root, "{(%d+)}$")
  if partition ~= mine then
    reject("PARTITION", (what or "") .. clip(text) .. " belongs to partition " .. partition .. ": use the key " .. string.gsub(root, "%d+}$", partition .. "}"))
  end
  return text
end
