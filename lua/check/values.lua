-- Checks of single values.

-- whole converts a text of digits to a number of up to 2^53. It returns nil for any other text. Long numbers are
-- compared as text, since a double cannot hold 2^53 + 1.
--
--   least, most  the bounds; nil: 0 and 2^53
local function whole(text, least, most)
  if not text or not string.find(text, "^%d+$") then
    return nil
  end
  if #text > 15 then
    local digits = string.match(text, "^0*(%d+)$")
    if #digits > 16 or #digits == 16 and digits > "9007199254740992" then
      return nil
    end
  end
  local n = tonumber(text)
  if n >= (least or 0) and n <= (most or 9007199254740992) then
    return n
  end
end

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

-- digits reports whether a text is a whole number of up to 15 digits.
local function digits(text)
  return text ~= nil and #text <= 15 and string.find(text, "^%d+$") ~= nil
end

-- number returns argument i, the number of items that follow it, each with `each` arguments. It raises an error if the
-- argument is no number, or if fewer arguments follow.
local function number(argv, i, each, what)
  local text = argv[i]
  local n = text and #text < 10 and string.find(text, "^%d+$") and tonumber(text)
  if not n or n * each > #argv - i then
    error("argument " .. i .. " must be the number of " .. what .. " that follow it", 0)
  end
  return n
end

local function character(bytes)
  return is_utf8(bytes) and bytes or "?"
end

-- valid_utf8 replaces bytes that are not UTF-8.
local function valid_utf8(text)
  return is_utf8(text) and text or (string.gsub(text, "[\128-\255][\128-\191]*", character))
end

-- names checks the names of kinds and queues. A function returns the field and the error, or nil.
local names = {}

function names.kind(text)
  if not text or #text > 128 or not string.find(text, "^%w[%w._:/-]*$") then
    return "kind", "must be 1 to 128 of A-Z a-z 0-9 . _ - : / and begin with a letter or digit"
  end
end

function names.queue(text)
  if not text or #text > 128 or not string.find(text, "^%w[%w._-]*$") then
    return "queue", "must be 1 to 128 of A-Z a-z 0-9 . _ - and begin with a letter or digit"
  end
end

-- word raises an error unless a text is one word, because the first line of a record separates its words by spaces.
function names.word(what, text)
  if not text or #text > 640 or not string.find(text, "^%w[%w%p]*$") then
    error("the " .. what .. " must be one word of up to 640 bytes that begins with a letter or digit", 0)
  end
  return text
end

local choices = {
  events = {all = true, terminal = true, none = true, rule = "must be all, terminal or none"},
  figures = {on = true, off = true, rule = "must be on or off"},
}

-- setting returns the error for a setting of a namespace, or nil.
local function setting(name, value)
  if name == "event_mib" then
    return not whole(value, 1, 65536) and "must be a whole number from 1 to 65536" or nil
  elseif name == "default_timeout_ms" then
    return value ~= "none" and not whole(value, 1, 4503599627370496) and "must be a whole number from 1 to 2^52, or none" or nil
  elseif not choices[name] then
    return "is not a setting of a namespace"
  end
  return choices[name][value] ~= true and choices[name].rule or nil
end

-- flow_names checks the id and the version of a definition. It returns the invalid field and the error, or nil.
local function flow_names(id, version)
  if not id or #id > 64 or not string.find(id, "^%a[%w_-]*$") then
    return "id", "must be 1 to 64 of A-Z a-z 0-9 _ - and begin with a letter"
  elseif version ~= "" and (not version or #version > 64 or not string.find(version, "^%w[%w._-]*$")) then
    return "version", "must be 1 to 64 of A-Z a-z 0-9 . _ - and begin with a letter or digit"
  end
end
