-- is_json reports whether a text that cjson accepts is JSON for others too. cjson also accepts numbers such as NaN, 0x1F
-- and 01, control characters in strings, and bytes that are not UTF-8.
--
-- @use named/is_utf8

-- words_fit reports whether there are no letters but those of true, false, null and exponents.
local function words_fit(text)
  text = string.gsub(string.gsub(string.gsub(text, "true", ""), "false", ""), "null", "")
  return not string.find(text, "[A-DF-Za-df-z]") and not string.find(text, "[^%d][eE]")
end

-- numbers_fit reports whether numbers have digits around a point, no plus in front and no leading zero.
local function numbers_fit(text)
  return not (string.find(text, ".", 1, true) and (string.find(text, "[^%d]%.") or string.find(text, "%.[^%d]"))
    or string.find(text, "+", 1, true) and string.find(text, "[^eE]%+")
    or string.find(text, "[%[,:%s]%-?0%d"))
end

local function is_json(text)
  local rest = " " .. text .. " "
  if string.find(rest, "\\", 1, true) then
    rest = string.gsub(rest, "\\.", "") -- a quotation mark in a string is behind a backslash
  end
  rest = string.gsub(rest, '"[^"\1-\31]*"', "")
  return not string.find(rest, '"', 1, true) -- a string with a control character has its marks still
    and (not string.find(rest, "%a") or words_fit(rest)) and numbers_fit(rest) and is_utf8(text)
end
