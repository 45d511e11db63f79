-- clip shortens an argument to 64 bytes and removes control characters, so that an error can quote it.
local function clip(text)
  return (string.gsub(string.sub(text, 1, 64), "%c", "?"))
end
