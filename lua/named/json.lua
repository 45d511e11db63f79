-- JSON as programs in other languages write it.
--
-- @use named/options: is_utf8, reject, shown

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

-- is_json reports whether a text that cjson accepts is JSON for others too. cjson also accepts numbers such as NaN, 0x1F
-- and 01, control characters in strings, and bytes that are not UTF-8.
local function is_json(text)
  local rest = " " .. text .. " "
  if string.find(rest, "\\", 1, true) then
    rest = string.gsub(rest, "\\.", "") -- a quotation mark in a string is behind a backslash
  end
  rest = string.gsub(rest, '"[^"\1-\31]*"', "")
  return not string.find(rest, '"', 1, true) -- a string with a control character has its marks still
    and (not string.find(rest, "%a") or words_fit(rest)) and numbers_fit(rest) and is_utf8(text)
end

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

-- value_end returns where the JSON value ends that begins at a position, or nil if it does not end.
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

local function fail(at)
  reject("INVALID", 'the tasks must be a JSON array of objects, such as [{"kind":"render"}]; see byte ' .. at)
end

-- part returns a value and the position behind it.
local function part(text, at)
  local last = value_end(text, at) or fail(at)
  return string.sub(text, at, last), last
end

local function decoded(text)
  return cjson.decode("[" .. text .. "]")[1]
end

-- value_of returns a value as text. It rejects what is not JSON for others, unless all of the text is JSON (strict).
local function value_of(text, raw, strict, name)
  if not strict and not is_json(text) then
    reject("INVALID", name .. " has what JSON does not have: a number such as NaN or 01, a raw control character, or bytes that are not UTF-8")
  elseif text == "null" then
    return false
  elseif raw then
    return text
  elseif string.byte(text) == 34 then
    return decoded(text)
  elseif string.find(text, "^[%d-]") then
    return text
  end
  reject("INVALID", name .. " must be a string or a number")
end

-- member reads a name and its value into an object, and returns the position behind them.
local function member(text, at, object, how, what)
  local name, last = part(text, at)
  if string.byte(name) ~= 34 then
    fail(at)
  end
  name = decoded(name)
  local value
  value, last = part(text, string.match(text, "^%s*:%s*()", last + 1) or fail(last))
  if object[name] ~= nil then
    reject("INVALID", what .. shown(name) .. " is given twice")
  end
  object[name] = value_of(value, how.raw[name], how.strict, what .. shown(name))
  return string.match(text, "^%s*()", last + 1)
end

local function object_of(text, at, how, what)
  local object = {}
  at = string.match(text, "^{%s*()", at) or fail(at)
  while string.byte(text, at) ~= 125 do
    at = member(text, at, object, how, what)
    at = string.match(text, "^,%s*()", at) or at
  end
  return object, string.match(text, "^%s*()", at + 1)
end

-- read_json reads a JSON array of objects. It returns each value as text: a string decoded, any other value as its JSON.
-- Decoding and encoding again would change numbers and empty lists.
--
--   raw  the names of values that are returned as JSON even if they are strings
--
-- Returns a list of {name: text, or false for null}
-- cjson has checked the text before, so it is valid JSON here.
local function read_json(text, raw)
  local ok, whole = pcall(cjson.decode, text)
  if not ok and string.find(tostring(whole), "nested") then
    reject("INVALID", "the tasks are nested too deep: a payload may have 998 levels")
  end
  local at = ok and type(whole) == "table" and string.match(text, "^%s*%[%s*()")
    or fail(ok and 1 or string.match(tostring(whole), "at character (%d+)") or 1)
  local objects, how = {}, {raw = raw, strict = is_json(text)}
  while string.byte(text, at) ~= 93 do
    objects[#objects + 1], at = object_of(text, at, how, "task " .. #objects + 1 .. ": ")
    at = string.match(text, "^,%s*()", at) or at
  end
  return objects
end
