-- is_utf8 reports whether a text is UTF-8.
local function is_utf8(text)
  if not string.find(text, "[\128-\255]") then
    return true
  end
  text = string.gsub(text, "[\194-\223][\128-\191]", " ")
  text = string.gsub(text, "\224[\160-\191][\128-\191]", " ")
  text = string.gsub(text, "[\225-\236\238\239][\128-\191][\128-\191]", " ")
  text = string.gsub(text, "\237[\128-\159][\128-\191]", " ")
  text = string.gsub(text, "\240[\144-\191][\128-\191][\128-\191]", " ")
  text = string.gsub(text, "[\241-\243][\128-\191][\128-\191][\128-\191]", " ")
  text = string.gsub(text, "\244[\128-\143][\128-\191][\128-\191]", " ")
  return not string.find(text, "[\128-\255]")
end
