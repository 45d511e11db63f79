-- value_end returns where the JSON value ends that begins at a position, or nil if it does not end.

-- string_end returns where a string ends.
local function string_end(text, at)
  local i = at + 1
  while true do
    i = string.find(text, '["\\]', i)
    if not i or string.byte(text, i) == 34 then
      return i
    end
    i = i + 2
  end
end

-- nested_end returns where an object or an array ends.
local function nested_end(text, at)
  local depth, i = 0, at
  repeat
    i = string.find(text, '[][{}"]', i)
    local byte = i and string.byte(text, i)
    if byte == 34 then
      i = string_end(text, i)
    elseif byte then
      depth = depth + ((byte == 91 or byte == 123) and 1 or -1)
      if depth == 0 then
        return i
      end
    end
    i = i and i + 1
  until not i
end

local function value_end(text, at)
  local byte = string.byte(text, at)
  if byte == 34 then
    return string_end(text, at)
  elseif byte == 91 or byte == 123 then
    return nested_end(text, at)
  end
  local behind = string.find(text, "[,%]}%s]", at)
  return behind and behind > at and behind - 1 or nil
end
