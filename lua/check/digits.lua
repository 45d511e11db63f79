-- digits reports whether a text is a whole number of up to 15 digits.
local function digits(text)
  return text ~= nil and #text <= 15 and string.find(text, "^%d+$") ~= nil
end
