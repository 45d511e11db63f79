-- JSON as programs in other languages write it. cjson decides what is JSON and decodes the strings. The other values are cut out of the
-- text, because encoding them again would round large numbers and turn [] into {}.
--
-- @use check/values: is_utf8
-- @use named/options: reject, shown

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

-- is_json reports whether parsers of other languages accept a text that cjson accepts. cjson is lenient: it takes numbers such as NaN,
-- 0x1F and 01, control characters in strings, bytes that are not UTF-8, and anything behind a zero byte.
local function is_json(text)
  local rest = " " .. text .. " "
  if string.find(rest, "\\", 1, true) then
    rest = string.gsub(rest, "\\.", "") -- the quotation marks that are left begin and end strings
  end
  rest = string.gsub(rest, '"[^"\1-\31]*"', "")
  return not string.find(rest, '"', 1, true) -- a string with a control character keeps its quotation marks
    and not string.find(text, "\0", 1, true)
    and (not string.find(rest, "%a") or words_fit(rest)) and numbers_fit(rest) and is_utf8(text)
end

local function blank(text)
  return string.rep("_", #text)
end

-- outline returns a text of the same length with _ in place of strings, so that patterns find the brackets and commas of the structure.
local function outline(text)
  if string.find(text, "\\", 1, true) then
    text = string.gsub(text, "\\.", "__")
  end
  return (string.gsub(text, '"[^"]*"', blank))
end

local function fail(at)
  reject("INVALID", 'the tasks must be a JSON array of objects, such as [{"kind":"render"}]; see byte ' .. at)
end

-- decode returns the value of a JSON text, in which cjson has rounded the numbers.
local function decode(text)
  local ok, value = pcall(cjson.decode, text)
  if not ok and string.find(tostring(value), "nested") then
    reject("INVALID", "the tasks are nested too deep: a payload may have 998 levels")
  end
  local zero = string.find(text, "\0", 1, true) -- cjson takes it for the end of the text
  if not ok or type(value) ~= "table" or zero then
    fail(not ok and string.match(tostring(value), "at character (%d+)") or zero or 1)
  end
  return value
end

-- value_of returns the text of a value: a string decoded, and anything else as it was written.
--
--   source  text; raw; strict, whether is_json accepts all of the text, so that its values need no check
local function value_of(source, text, decoded, name, task)
  if not source.strict and not is_json(text) then
    reject("INVALID", task .. shown(name) .. " has what JSON does not have: a number such as NaN or 01, a raw control character, or bytes that are not UTF-8")
  elseif text == "null" then
    return false
  elseif source.raw[name] or type(decoded) == "number" then
    return text
  elseif type(decoded) == "string" then
    return decoded
  end
  reject("INVALID", task .. shown(name) .. " must be a string or a number")
end

-- object_of returns the object whose outline begins at a position.
local function object_of(source, at, object, decoded, task)
  local values, members = {}, string.sub(object, 2, -2)
  if string.find(members, "{", 1, true) or string.find(members, "[", 1, true) then
    members = string.gsub(string.gsub(members, "%b{}", blank), "%b[]", blank)
  end
  for name_from, name_to, from, to in string.gmatch(members, "()_+()%s*:%s*()[^%s,]+()") do
    local name = cjson.decode("[" .. string.sub(source.text, at + name_from, at + name_to - 1) .. "]")[1]
    if values[name] ~= nil then
      reject("INVALID", task .. shown(name) .. " is given twice") -- cjson keeps the last
    end
    values[name] = value_of(source, string.sub(source.text, at + from, at + to - 1), decoded[name], name, task)
  end
  return values
end

-- read_json reads a JSON array of objects.
--
--   raw   the names of values that are returned as JSON even if they are strings
--   most  how many objects there may be
--
-- Returns a list of {name: text, or false for null}
local function read_json(text, raw, most)
  local decoded, structure = decode(text), outline(text)
  if #decoded > most then
    reject("INVALID", "there are " .. #decoded .. " tasks, and a call takes up to " .. most)
  end
  local objects, source = {}, {text = text, raw = raw, strict = is_json(text)}
  local at = string.match(structure, "^%s*%[%s*()") or fail(1)
  while string.byte(structure, at) ~= 93 do -- a closing bracket
    local object, behind = string.match(structure, "^(%b{})%s*,?%s*()", at)
    local n = object and #objects + 1 or fail(at)
    objects[n], at = object_of(source, at, object, decoded[n], "task " .. n .. ": "), behind
  end
  return objects
end
