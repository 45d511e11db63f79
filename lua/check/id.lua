-- id checks the id of a new task: the partition, a dash, the letters and digits of a root, then up to 16 names of
-- children, each behind a dot. Ids of hooks are not checked here: the ended task makes them. It returns "id" and why,
-- or nil.
--
-- @use store/owner

-- depth returns how many names of children an id of this partition ends with; nil if it is not an id.
local function depth(tx, text)
  if string.match(text, "^(%d+)%-%w[%w._!-]*$") ~= tx.key.partition or string.find(text, "%.[^%w]") or string.sub(text, -1) == "." then
    return nil
  end
  return select(2, string.gsub(text, "%.", ""))
end

local function id(tx, text)
  if #text > 512 then
    return "id", "has " .. #text .. " bytes, the limit is 512"
  elseif string.match(text, "^(%d+)%-%w[%w_-]*$") == tx.key.partition then
    return nil -- most tasks are roots
  end
  local parent = owner(text)
  local above = parent and depth(tx, parent)
  if above and above < 16 and string.find(text, "^%w[%w_-]*$", #parent + 2) then
    return nil
  elseif depth(tx, text) == 17 then
    return "id", "is nested deeper than 16: create it as a child of a task higher up"
  end
  return "id", "must be the partition, " .. tx.key.partition .. ", a dash, letters and digits; then for each child a dot" ..
    " and a name of A-Z a-z 0-9 _ - that begins with a letter or digit"
end
