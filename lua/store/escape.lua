-- escape writes a text as one word of a line: a space, a % and each control character become % and two
-- hexadecimal digits.
local function code(byte)
  return string.format("%%%02X", string.byte(byte))
end

local function escape(text)
  if string.find(text, "[%c %%]") then
    text = string.gsub(text, "[%c %%]", code)
  end
  return text
end
