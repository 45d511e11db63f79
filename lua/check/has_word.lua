-- has_word reports whether a text contains a word. Its words are separated by single spaces.
local function has_word(text, word)
  return string.find(" " .. text .. " ", " " .. word .. " ", 1, true) ~= nil
end
