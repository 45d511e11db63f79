-- The type of a result: which JSON a promise, or a task of a worker, can end with.
--
--   bool string number any              any is any JSON, null too
--   int int8 int16 int32                whole numbers of this many bits: 64, 8, 16, 32
--   uint uint8 uint16 uint32            the same, not negative
--   time                                a string such as "2026-11-26T20:00:00Z"
--   [T]                                 an array
--   {a: T, "b c": T?}                   an object. Members of other names fit; the case of ASCII letters in names does not count
--   {*: T}                              an object whose members all have this type
--   T?                                  T or null. A member of this type, or of type any, can be absent, and so can a whole result
--
-- encoding/json in Go decodes what fits: so the case of names does not count, and 1.0 is not an int.
--
-- @use check/values: is_utf8

local result_type = {longest = 1024, deepest = 16}

-- A value is checked inside Redis, which does nothing else meanwhile. Of a longer text only the first character is checked, and so it is
-- of the texts after this many bytes in one call. A call checks up to this many values: a name and an escape count as one.
local longest_text, most_bytes, most_values, deepest_value = 65536, 100000, 10000, 1000

local whole_numbers = { -- the greatest, and the digits of the least
  int = {"9223372036854775807", "9223372036854775808"}, int8 = {"127", "128"}, int16 = {"32767", "32768"}, int32 = {"2147483647", "2147483648"},
  uint = {"18446744073709551615"}, uint8 = {"255"}, uint16 = {"65535"}, uint32 = {"4294967295"},
}

local json_of = {bool = "bool", string = "string", time = "string", number = "number", any = "any", int = "number", int8 = "number",
  int16 = "number", int32 = "number", uint = "number", uint8 = "number", uint16 = "number", uint32 = "number"}

-- fold returns the name without case, as encoding/json compares names: two letters outside of ASCII are equal to k and s.
local function fold(name)
  return (string.gsub(string.gsub(string.lower(name), "\226\132\170", "k"), "\197\191", "s"))
end

-- read has a function for each form of a type. It returns the type and the position behind it, or nil if the text is none.
local read = {}

function read.object(text, at, depth)
  local type = {json = "object", members = {}, folded = {}, names = {}}
  local sign, next = string.match(text, "^ *(})()", at)
  while sign ~= "}" do
    local name, from = string.match(text, "^ *([%a_][%w_]*) *:()", at)
    if not name then
      name, from = string.match(text, '^ *"([^"\\%c]+)" *:()', at)
    end
    if not name then
      name, from = false, string.match(text, "^ *%* *:()", at)
    end
    local member
    if from then
      member, next = read.type(text, from, depth + 1)
    end
    sign, at = string.match(member and text or "", "^ *([,}])()", next)
    if not sign or type.each or name and type.members[name] or not name and (type.names[1] or sign == ",") then
      return nil
    elseif name then
      type.members[name], type.names[#type.names + 1] = member, name
      type.folded[fold(name)] = type.folded[fold(name)] or member
    else
      type.each = member
    end
    next = at
  end
  return type, next
end

function read.array(text, at, depth)
  local element, next = read.type(text, at, depth + 1)
  next = element and string.match(text, "^ *%]()", next)
  return next and {json = "array", element = element}, next
end

function read.type(text, at, depth)
  if depth > result_type.deepest then
    return nil
  end
  local sign, next = string.match(text, "^ *([{%[])()", at)
  local type
  if sign then
    type, next = (sign == "{" and read.object or read.array)(text, next, depth)
  else
    local word
    word, next = string.match(text, "^ *(%a+%d*)()", at)
    type = json_of[word] and {json = json_of[word], word = word}
  end
  if not type then
    return nil
  end
  local mark = string.match(text, "^%?()", next)
  type.optional = mark ~= nil or type.word == "any"
  return type, mark or next
end

-- parse returns the type that a text describes, or nil.
function result_type.parse(text)
  local type, next = read.type(#text <= result_type.longest and text or "", 1, 1)
  return type and string.find(text, "^ *$", next) and type
end

local begins = {['"'] = "string", ["{"] = "object", ["["] = "array", t = "bool", f = "bool", n = "null"}

local articles = {string = "a string", object = "an object", array = "an array", bool = "true or false", null = "null", number = "a number"}

-- The walk over a value. w has its text; known.left, how many more values are checked; and if the value does not fit: fault, and where
-- (path). A function returns the position behind the value, or nil: it does not fit, or the rest is not checked.
local walk = {}

local function fail(w, fault)
  w.fault = fault
  return nil
end

-- spend reports whether n more values are checked.
local function spend(w, n)
  w.known.left = w.known.left - n
  return w.known.left >= 0
end

local function not_json(w, at)
  return fail(w, at > #w.text and "ends within a value" or "is not JSON, see byte " .. at)
end

-- inside adds the place of an inner value to the path of a fault. Of a long path it keeps the end.
local function inside(w, place)
  if w.fault and #(w.path or "") < 200 then
    w.path = place .. (w.path and (string.sub(w.path, 1, 1) == "[" and "" or ".") .. w.path or "")
  end
  return nil
end

local function days(year, month)
  if month == 2 then
    return year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0) and 29 or 28
  end
  return (month == 4 or month == 6 or month == 9 or month == 11) and 30 or 31
end

local function is_time(text)
  local year, month, day, hour, minute, second, zone = string.match(text, "^(%d%d%d%d)%-(%d%d)%-(%d%d)T(%d%d):(%d%d):(%d%d)(.*)$")
  if not year then
    return false
  end
  zone = string.gsub(zone, "^%.%d+", "")
  local ahead, past = string.match(zone, "^[+-](%d%d):(%d%d)$")
  month, day = tonumber(month), tonumber(day)
  return (zone == "Z" or ahead and ahead < "24" and past < "60") and month >= 1 and month <= 12 and day >= 1 and day <= days(tonumber(year), month)
    and hour < "24" and minute < "60" and second < "60"
end

-- texts has a check for each type that is a string of some form.
local texts = {time = is_time}

function walk.string(w, at, type)
  local stop = at + 1
  repeat
    stop = string.match(w.text, '^[^"\\\1-\31]*()', stop)
    local escape = string.match(w.text, '^\\["\\/bfnrt]()', stop) or string.match(w.text, "^\\u%x%x%x%x()", stop)
    stop = escape or stop
    if escape and not spend(w, 1) then
      return nil
    end
  until not escape
  if string.sub(w.text, stop, stop) ~= '"' then
    return not_json(w, stop)
  end
  local fits = type and texts[type.word]
  if fits and not spend(w, 2) then -- a time takes as long as three values
    return nil
  elseif fits and not fits(string.sub(w.text, at + 1, stop - 1)) then
    return fail(w, 'is not a time such as "2026-11-26T20:00:00Z"')
  end
  return stop + 1
end

-- is_huge reports whether a double cannot hold a number: it is 2^1024 - 2^970 or more, of which these are the first digits.
local least_huge = "1797693134862315807937289714053"

local function is_huge(text)
  local digits, rest = string.match(text, "^(%d+)(.*)$")
  local fraction, sign, exponent = string.match(rest, "^%.?(%d*)[eE]?([+-]?)0*(%d*)$")
  local first = string.find(digits .. fraction, "[1-9]")
  local power = #exponent > 6 and 1000000 or tonumber("0" .. exponent)
  power = first and #digits - first + (sign == "-" and -power or power)
  return first and (power > 308 or power == 308 and string.sub(digits .. fraction, first) >= least_huge)
end

function walk.number(w, at, type)
  local sign, digits, stop = string.match(w.text, "^(-?)(%d+)()", at)
  if not digits or #digits > 1 and string.sub(digits, 1, 1) == "0" then
    return not_json(w, at)
  end
  local whole = stop
  stop = string.match(w.text, "^%.%d+()", stop) or stop
  stop = string.match(w.text, "^[eE][+-]?%d+()", stop) or stop
  local limits = type and whole_numbers[type.word]
  if limits then
    local limit = sign == "" and limits[1] or limits[2]
    if stop > whole then
      return fail(w, "is not written as a whole number")
    elseif not limit or #digits > #limit or #digits == #limit and digits > limit then
      return fail(w, "is out of range")
    end
  elseif type and type.word == "number" and is_huge(string.sub(w.text, at + #sign, stop - 1)) then
    return fail(w, "is out of range")
  end
  return stop
end

function walk.bool(w, at)
  return string.match(w.text, "^true()", at) or string.match(w.text, "^false()", at) or not_json(w, at)
end

function walk.null(w, at)
  return string.match(w.text, "^null()", at) or not_json(w, at)
end

function walk.array(w, at, type, depth)
  local next, n = string.match(w.text, "^.[ \t\r\n]*()", at), 0
  local stop = string.match(w.text, "^%]()", next)
  while not stop do
    local sign
    at = walk.value(w, next, type and type.element, depth + 1)
    if not at then
      return inside(w, "[" .. n .. "]")
    end
    sign, next = string.match(w.text, "^[ \t\r\n]*([,%]])[ \t\r\n]*()", at)
    if not sign then
      return not_json(w, at)
    end
    stop, n = sign == "]" and string.find(w.text, "]", at, true) + 1, n + 1
  end
  return stop
end

-- name_at returns the name of a member and the position of its value.
local function name_at(w, at)
  local stop = string.sub(w.text, at, at) == '"' and walk.string(w, at)
  local value = stop and string.match(w.text, "^[ \t\r\n]*:[ \t\r\n]*()", stop)
  if not value then
    return nil, w.fault or w.known.left >= 0 and not_json(w, at)
  end
  local name = string.sub(w.text, at + 1, stop - 2)
  if string.find(name, "\\", 1, true) then
    local ok, list = pcall(cjson.decode, '["' .. name .. '"]')
    name = ok and list[1] or name
  end
  return name, value
end

local function member_of(type, name)
  return type and (type.each or type.members and (type.members[name] or type.folded[fold(name)]))
end

local function shown(name)
  return string.find(name, "^[%w_]+$") and #name <= 64 and name or "a member"
end

function walk.object(w, at, type, depth)
  local next, seen = string.match(w.text, "^.[ \t\r\n]*()", at), {}
  local stop = string.match(w.text, "^}()", next)
  while not stop do
    local name, value = name_at(w, next)
    if not name then
      return nil
    end
    local member, sign = member_of(type, name), nil
    if not spend(w, 1) then
      return nil
    elseif member then
      seen[member] = true
    end
    at = walk.value(w, value, member, depth + 1)
    if not at then
      return inside(w, shown(name))
    end
    sign, next = string.match(w.text, "^[ \t\r\n]*([,}])[ \t\r\n]*()", at)
    if not sign then
      return not_json(w, at)
    end
    stop = sign == "}" and string.find(w.text, "}", at, true) + 1
  end
  local names = type and type.names or {}
  if not spend(w, #names) then
    return nil
  end
  for _, name in ipairs(names) do
    local member = type.members[name]
    if not member.optional and not seen[member] then
      return inside(w, shown(name), fail(w, "is missing"))
    end
  end
  return stop
end

-- json_at returns which JSON begins at a position; nil if this type does not allow it.
local function json_at(w, at, type)
  local json = begins[string.sub(w.text, at, at)] or "number"
  if json == "number" and not string.find(w.text, "^-?%d", at) then
    return not_json(w, at)
  elseif type and type.json ~= "any" and json ~= type.json and not (json == "null" and type.optional) then
    return fail(w, "is " .. articles[json])
  end
  return json
end

function walk.value(w, at, type, depth)
  if not spend(w, 1) then
    return nil
  elseif depth > deepest_value then
    return fail(w, "is nested deeper than " .. deepest_value)
  end
  local json = json_at(w, at, type)
  return json and walk[json](w, at, type, depth)
end

local hints = {bool = ", true or false", string = ', in quotation marks', time = ', such as "2026-11-26T20:00:00Z"'}

-- fault_of returns what is wrong with a result, or nil.
local function fault_of(known, type, text)
  local w = {known = known, text = text, fault = nil, path = nil}
  local at = string.match(text, "^[ \t\r\n]*()")
  if text == "" then
    return not type.optional and "it is empty" or nil
  elseif #text > longest_text or #text > known.bytes then
    return not json_at(w, at, type) and "it " .. w.fault or nil
  end
  known.bytes = known.bytes - #text
  if string.find(text, "\0", 1, true) or not is_utf8(text) then
    return "it is not UTF-8 text"
  end
  local stop = walk.value(w, at, type, 1)
  if stop and not string.find(text, "^[ \t\r\n]*$", stop) then
    not_json(w, stop)
  end
  return w.fault and (w.path or "it") .. " " .. w.fault
end

-- of returns the type of the result of a task, or nil. A run of a flow reads the results of its nodes as text.
function result_type.of(task)
  return task.result_type or task.node and "text"
end

-- is_text reports whether a result begins with UTF-8 text. Of a long one only so much is checked.
local function is_text(known, result)
  local text = string.sub(result, 1, longest_text)
  if #text > known.bytes then
    return true
  end
  known.bytes = known.bytes - #text
  local cut = #text < #result and string.find(text, "[\192-\255][\128-\191]*$", -4)
  return is_utf8(cut and string.sub(text, 1, cut - 1) or text)
end

-- refuse returns why a result does not fit its type, or nil.
--
--   known  an empty table at first, of the call: types that it has parsed, and how many more values (left) in how many bytes it checks
--   of     the text of the type, or text
function result_type.refuse(known, of, result)
  known.left, known.bytes = known.left or most_values, known.bytes or most_bytes
  if of == "text" then
    return not is_text(known, result) and "must be UTF-8 text, since a flow reads it: write other bytes in base64, or store them and return their name" or nil
  end
  local type = known[of]
  if not type then
    known.left = known.left - math.floor(#of / 4) -- to read a type takes as long as this many values
    type = known.left >= 0 and result_type.parse(of) or {json = "any", word = "any", optional = true} -- a newer version knows more types
    known[of] = type
  end
  local fault = fault_of(known, type, result)
  return fault and "must be JSON of type " .. of .. (hints[type.word] or "") .. ": " .. fault
end
