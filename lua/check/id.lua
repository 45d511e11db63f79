-- id says what is wrong with the id of a new task: the partition, a dash, a root's letters and digits, then
-- up to 16 names of children behind dots. A hook's id is made by the task that it belongs to. It returns
-- "id" and why, or nil.
--
-- @use task/owner

-- depth is how many names of children an id of this partition ends with; nil if it is no id.
local function depth(tx, text)
  if string.match(text, "^(%d+)%-%w[%w._!-]*$") ~= tx.key.partition or string.find(text, "%.[^%w]") or string.sub(text, -1) == "." then
    return nil
  end
  return select(2, string.gsub(text, "%.", ""))
end

local function id(tx, text)
  if text and #text <= 512 then
    if string.match(text, "^(%d+)%-%w[%w_-]*$") == tx.key.partition then
      return nil -- a root, as most are
    end
    local parent = owner(text)
    local above = parent and depth(tx, parent)
    if above and above < 16 and string.find(text, "^%w[%w_-]*$", #parent + 2) then
      return nil
    elseif depth(tx, text) == 17 then
      return "id", "is nested deeper than 16: have a task above it make this one"
    end
  end
  return "id", "must be the partition, " .. tx.key.partition .. ", a dash, letters and digits"
end
