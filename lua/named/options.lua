-- Names and values, as programs in other languages give them.
--
-- @use check/values: whole
-- @use store/now

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

local function character(bytes)
  return is_utf8(bytes) and bytes or "?"
end

-- clip shortens an argument to 64 bytes, and replaces control characters and bytes that are not UTF-8, so that an error
-- can quote it.
local function clip(text)
  text = string.gsub(string.sub(text, 1, 64), "%c", "?")
  return (string.gsub(text, "[\128-\255][\128-\191]*", character))
end

-- reject ends a function of the façade: the caller gets the error reply "CURFEW WORD sentence". Nothing has been
-- written by then.
--
--   word  INVALID    an argument is missing, unknown, given twice or not valid
--         PARTITION  the task belongs to another partition
--         NAMESPACE  the namespace was not opened, or is of another version
--         MISSING    there is no such task
--         LOST       the task no longer belongs to this claim
--         CONFLICT   the idempotency key belongs to a task with another kind or payload
--         TAKEN      the id belongs to another task
--         OWNER      the owner of the child has ended, or does not exist
--         BROKEN     a record cannot be read
local function reject(word, sentence)
  error({curfew = word, says = sentence}, 0)
end

-- shown returns a name of an argument for a sentence: as it is, or in quotation marks if it is not a plain word.
local function shown(name)
  return #name <= 64 and string.find(name, "^[%w_]+$") and name or '"' .. clip(name) .. '"'
end

-- first returns the first argument of a function of the façade. It comes before the names and values.
local function first(argv, what)
  if not argv[1] then
    reject("INVALID", "give " .. what .. " first, then names and values")
  end
  return argv[1]
end

-- distance returns how many letters must be added, dropped or changed.
local function distance(a, b)
  local row = {}
  for j = 0, #b do
    row[j] = j
  end
  for i = 1, #a do
    local diagonal = row[0]
    row[0] = i
    for j = 1, #b do
      local changed = diagonal + (string.byte(a, i) == string.byte(b, j) and 0 or 1)
      diagonal = row[j]
      row[j] = math.min(changed, row[j] + 1, row[j - 1] + 1)
    end
  end
  return row[#b]
end

-- nearest returns the known name that is most like a misspelt one, or nil.
local function nearest(name, known)
  local best, least = nil, math.max(1, math.floor((#name + 1) / 3)) + 1
  if #name > 64 then
    return nil
  end
  for other in pairs(known) do
    local d = distance(string.lower(name), other)
    if d < least or d == least and best and other < best then
      best, least = other, d
    end
  end
  return best
end

-- unknown rejects a name. what begins the sentence: "" or "task 3: ".
local function unknown(name, known, what)
  local near, all = nearest(name, known), {}
  for other, how in pairs(known) do
    if how ~= "first" then
      all[#all + 1] = other
    end
  end
  table.sort(all)
  reject("INVALID", what .. shown(name) .. " is not a known name: " ..
    (near and "did you mean " .. near .. "?" or all[1] and "use " .. table.concat(all, ", ") or "this function takes none"))
end

-- options reads names and values from argument i on. It rejects a name without a value, a name that is given twice,
-- and one that is not known.
--
--   known  name: true, or "first" for an argument that is given before the names, without one
--
-- Returns name: value
local options = {}

function options.check(name, given, known, what)
  if not known[name] then
    unknown(name, known, what)
  elseif known[name] == "first" then
    reject("INVALID", what .. name .. " comes first, without a name")
  elseif given[name] then
    reject("INVALID", what .. name .. " is given twice")
  end
end

function options.read(argv, i, known)
  local given = {}
  for j = i, #argv, 2 do
    options.check(argv[j], given, known, "")
    if not argv[j + 1] then
      reject("INVALID", argv[j] .. " has no value: give names and values in pairs")
    end
    given[argv[j]] = argv[j + 1]
  end
  return given
end

-- root_of returns the one key of a function of the façade, the root of a partition.
local function root_of(keys)
  local root = keys[1]
  if #keys ~= 1 then
    reject("INVALID", "give one key, the root of a partition, such as curfew:{0}; there are " .. #keys)
  end
  local namespace, partition = string.match(root, "^(%w[%w._:-]*):{(%d+)}$")
  if not namespace or #namespace > 128 or #partition > 3 or tonumber(partition) > 998 or string.find(partition, "^0%d") then
    reject("INVALID", 'the key "' .. clip(root) .. '" is not the root of a partition: use a name, a colon and the number in braces, such as curfew:{0}')
  end
  return root, namespace
end

-- id_of returns the id of a task from an argument. The task must belong to the partition of the key.
--
--   what  how the error begins: "task 3: "; absent: ""
local function id_of(text, root, what)
  local partition = text and #text <= 640 and string.match(text, "^(%d+)%-%w[%w._!-]*$")
  if not partition or #partition > 3 or tonumber(partition) > 998 or string.find(partition, "^0%d") then
    reject("INVALID", (what or "") .. 'the id "' .. clip(text or "") .. '" is not the id of a task: it is the partition, a dash, letters and digits, such as 0-01J9ZK3Q8X4M2C7W5T')
  end
  local mine = string.match(root, "{(%d+)}$")
  if partition ~= mine then
    reject("PARTITION", (what or "") .. clip(text) .. " belongs to partition " .. partition .. ": use the key " .. string.gsub(root, "%d+}$", partition .. "}"))
  end
  return text
end

-- word_of returns an option that is one word, such as the id of a call, or its default.
local function word_of(given, name, absent)
  local word = given[name] or absent
  if #word > 128 or not string.find(word, "^%w[%w._:@+/=-]*$") then
    reject("INVALID", name .. ' "' .. clip(word) .. '" must be 1 to 128 of A-Z a-z 0-9 . _ : @ + / = - and begin with a letter or digit')
  end
  return word
end

-- count_of returns an option that is a whole number, as a text.
local function count_of(given, name, absent, least, most)
  local text = given[name] or absent
  if not whole(text, least, most) then
    reject("INVALID", name .. ' "' .. clip(text) .. '" must be a whole number from ' .. least .. " to " .. (most or "2^53"))
  end
  return text
end

local units = {ns = 1, us = 1000, ["µs"] = 1000, ["μs"] = 1000, ms = 1000000, s = 1000000000, m = 60000000000, h = 3600000000000}
local most = 9223372036854 -- ms, which is 292 years: what a duration of Go can hold

-- part returns one number and its unit as whole ms and the ns beside them, as Go reads it, or nil. A number can have 15
-- digits before the point, which Lua holds exactly. Digits behind the point that are less than a ns do not count.
local function part(integer, point, fraction, unit)
  if unit == "d" then
    local ms, ns = part(integer, point, fraction, "h")
    return ms and ms * 24, ns and ns * 24
  end
  local size, n, behind = units[unit], string.match(integer, "^0*(%d*)$"), string.sub(fraction, 1, 15)
  if not size or #n > 15 or point == "" and fraction ~= "" or integer .. fraction == "" then
    return nil
  end
  n = tonumber(n, 10) or 0
  local rest = math.floor((tonumber(behind, 10) or 0) * size / 10 ^ #behind)
  if size >= 1000000 then
    return n * (size / 1000000), rest
  end
  local per_ms = 1000000 / size
  return math.floor(n / per_ms), n % per_ms * size + rest
end

-- ms_of returns a duration in ms, or nil and whether it is finer than 1 ms.
local function ms_of(text)
  local sum, beside, at, days = 0, 0, 1, true
  while at <= #text do
    local integer, point, fraction, unit, next = string.match(text, "^(%d*)(%.?)(%d*)([%a\194\206\181\188]+)()", at)
    local ms, ns
    if integer then
      ms, ns = part(integer, point, fraction, unit)
    end
    if not ms or unit == "d" and not days then
      return nil
    end
    sum, beside, at, days = sum + ms, beside + ns, next, false -- days come first
  end
  if beside % 1000000 ~= 0 then
    return nil, true
  end
  return sum + beside / 1000000
end

-- known has the ms of up to 64 texts, which are kept from call to call.
local known, count = {}, 0

local function keep(text, ms)
  if count == 64 then
    known, count = {}, 0
  end
  known[text], count = string.format("%d", ms), count + 1
  return known[text]
end

-- span reads a duration as people write it (500ms, 30s, 1h30m, 1.5h, 1d12h), and returns its ms as a text.
--
--   field  its name, for the error
--   what   how the error begins: "" or "task 3: "
local function span(text, field, what)
  local ms, finer, why
  if known[text] then
    return known[text]
  end
  if text == "0" then
    ms = 0
  elseif text ~= "" and #text <= 64 then
    ms, finer = ms_of(text)
  end
  if string.find(text, "^%d+$") and text ~= "0" then
    why = "has no unit: write " .. clip(text) .. "s, or give " .. field .. "_ms in ms"
  elseif finer then
    why = "is finer than 1 ms"
  elseif not ms then
    why = "is not a duration: write a number and a unit (ms, s, m, h or d), such as 30s, 1h30m or 1d"
  elseif ms > most then
    why = "is longer than 106751d"
  end
  if why then
    reject("INVALID", what .. field .. ' "' .. clip(text) .. '" ' .. why)
  end
  return keep(text, ms)
end

local function says(ms)
  return ms == 0 and "0s" or ms % 3600000 == 0 and ms / 3600000 .. "h" or ms .. "ms"
end

-- span_of returns an option that is a duration in ms, as a text: name as 30s, or name_ms as 30000.
local function span_of(given, name, absent, least, most)
  local text, in_ms = given[name], name .. "_ms"
  if text and given[in_ms] then
    reject("INVALID", "give " .. name .. " or " .. in_ms .. ", and not both")
  elseif not text then
    return count_of(given, in_ms, absent, least, most)
  end
  local ms = span(text, name, "")
  if not whole(ms, least, most) then
    reject("INVALID", name .. ' "' .. clip(text) .. '" must be from ' .. says(least) .. " to " .. says(most))
  end
  return ms
end

-- worker_of returns the name of the worker or reaper that calls.
--
--   what  worker or reaper
local function worker_of(argv, what)
  local name = first(argv, "the name of the " .. what)
  if #name > 128 or not string.find(name, "^%w[%w._:@+/=-]*$") then
    reject("INVALID", "the " .. what .. ' "' .. clip(name) .. '" must be 1 to 128 of A-Z a-z 0-9 . _ : @ + / = - and begin with a letter or digit')
  end
  return name
end

-- call_of returns the id of this call. If the caller gave none, call_of makes it of the instant and the arguments.
local function call_of(given, root, argv)
  return given.call and word_of(given, "call") or string.format("%d-", now(root)) .. redis.sha1hex(table.concat(argv, "\n"))
end
