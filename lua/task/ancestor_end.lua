-- ancestor_end returns the earliest instant at which an ancestor of a task ended, and the id of that ancestor. Of
-- equal instants the outermost ancestor counts. It returns nil if no ancestor has ended. Ancestry begins after the last bang (store/owner.lua).
--
-- @use task/drained
local function ancestor_end(tx, id)
  local dot = string.find(id, ".", 1, true)
  if dot then
    local bang = string.find(id, "![^!]*$")
    dot = string.find(id, ".", bang or 1, true)
  end
  local first, ancestor
  while dot do
    local prefix = string.sub(id, 1, dot - 1)
    local ended = drained(tx, prefix)
    if ended and (not first or ended < first) then
      first, ancestor = ended, prefix
    end
    dot = string.find(id, ".", dot + 1, true)
  end
  return first, ancestor
end
