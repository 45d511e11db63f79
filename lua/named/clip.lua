-- clip shortens an argument to 64 bytes, and replaces control characters and bytes that are not UTF-8, so that an error
-- can quote it.
--
-- @use named/is_utf8
local function character(bytes)
  return is_utf8(bytes) and bytes or "?"
end

local function clip(text)
  text = string.gsub(string.sub(text, 1, 64), "%c", "?")
  return (string.gsub(text, "[\128-\255][\128-\191]*", character))
end
