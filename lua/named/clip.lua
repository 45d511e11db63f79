-- clip makes an argument fit to be quoted in an error: 64 bytes at most, and no control characters.
local function clip(text)
  return (string.gsub(string.sub(text, 1, 64), "%c", "?"))
end
