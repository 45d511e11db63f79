-- read_json reads a JSON array of objects. It returns each value as text: a string decoded, any other value as its JSON.
-- Decoding and encoding again would change numbers and empty lists.
--
--   raw  the names of values that are returned as JSON even if they are strings
--
-- Returns a list of {name: text}, without values that are null
--
-- @use named/clip
-- @use named/reject
-- @use named/value_end

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

-- member reads a name and its value into an object, and returns the position behind them.
local function member(text, at, object, raw, what)
  local name, last = part(text, at)
  if string.byte(name) ~= 34 then
    fail(at)
  end
  name = decoded(name)
  local value
  value, last = part(text, string.match(text, "^%s*:%s*()", last + 1) or fail(last))
  if object[name] ~= nil then
    reject("INVALID", what .. clip(name) .. " is given twice")
  end
  object[name] = (raw[name] or string.byte(value) ~= 34) and value or decoded(value)
  return string.match(text, "^%s*()", last + 1)
end

local function object_of(text, at, raw, what)
  local object = {}
  at = string.match(text, "^{%s*()", at) or fail(at)
  while string.byte(text, at) ~= 125 do
    at = member(text, at, object, raw, what)
    at = string.match(text, "^,%s*()", at) or at
  end
  for name, value in pairs(object) do
    if value == "null" then
      object[name] = nil
    end
  end
  return object, string.match(text, "^%s*()", at + 1)
end

-- cjson has checked the text before, so it is valid JSON here.
local function read_json(text, raw)
  local ok, whole = pcall(cjson.decode, text)
  local at = ok and type(whole) == "table" and string.match(text, "^%s*%[%s*()")
  if not at then
    fail(1)
  end
  local objects = {}
  while string.byte(text, at) ~= 93 do
    objects[#objects + 1], at = object_of(text, at, raw, "task " .. #objects + 1 .. ": ")
    at = string.match(text, "^,%s*()", at) or at
  end
  return objects
end
