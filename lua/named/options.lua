-- The arguments of functions for other languages: names and values, ids, numbers and durations.
--
-- @use check/values: valid_utf8, whole
-- @use store/now

-- clip shortens an argument to 64 bytes, and replaces control characters and bytes that are not UTF-8, so that an error
-- can quote it: clients decode errors as UTF-8, and a newline would end the error.
local function clip(text)
  return valid_utf8((string.gsub(string.sub(text, 1, 64), "%c", "?")))
end

-- reject ends a function of the façade with the error reply "CURFEW WORD sentence". Nothing has been written by then.
--
--   word  INVALID    an argument is missing, unknown, given twice or not valid
--         PARTITION  the task belongs to another partition
--         NAMESPACE  the namespace was not opened, or has another version
--         MISSING    there is no such task
--         LOST       the task no longer belongs to this claim
--         CONFLICT   the idempotency key belongs to a task with another kind or payload
--         TAKEN      the id belongs to another task
--         FULL       the queue has its max_length of tasks in line
--         OWNER      the owner of the child has ended, or does not exist
--         BROKEN     a record cannot be read
local function reject(word, sentence)
  error({curfew = word, sentence = sentence}, 0) -- a table, so that reply.lua can distinguish it from other errors
end

-- shown formats the name of an argument for a sentence: a plain word as it is, and anything else in quotation marks.
local function shown(name)
  return #name <= 64 and string.find(name, "^[%w_]+$") and name or '"' .. clip(name) .. '"'
end

-- first returns the first argument of a function of the façade, which comes before the names and values.
local function first(argv, meaning)
  if not argv[1] then
    reject("INVALID", "give " .. meaning .. " first, then names and values")
  end
  return argv[1]
end

local function reject_unknown(name, parameters, prefix)
  local names = {}
  for parameter, use in pairs(parameters) do
    if use ~= "first" or prefix ~= "" then -- an object of a list has no argument before the names
      names[#names + 1] = parameter
    end
  end
  table.sort(names)
  reject("INVALID", prefix .. shown(name) .. " is not a known name: " ..
    (names[1] and "use " .. table.concat(names, ", ") or "this function takes none"))
end

-- options reads names and values from argument i on. It rejects an unknown name, a name that is given twice, and a name
-- without a value.
--
--   parameters  name: true, or "first" for an argument that comes before the names
--   prefix      the beginning of an error: "" or "task 3: "
--
-- Returns name: value
local options = {}

function options.check(name, args, parameters, prefix)
  if not parameters[name] then
    reject_unknown(name, parameters, prefix)
  elseif parameters[name] == "first" then
    reject("INVALID", prefix .. name .. " comes first, without a name")
  elseif args[name] then
    reject("INVALID", prefix .. name .. " is given twice")
  end
end

function options.read(argv, i, parameters)
  local args = {}
  for j = i, #argv, 2 do
    options.check(argv[j], args, parameters, "")
    if not argv[j + 1] then
      reject("INVALID", argv[j] .. " has no value: give names and values in pairs")
    end
    args[argv[j]] = argv[j + 1]
  end
  return args
end

-- is_partition reports whether digits are the number of a partition, in the one spelling that roots and ids have.
local function is_partition(digits)
  return #digits <= 3 and tonumber(digits) <= 998 and not string.find(digits, "^0%d")
end

-- root_of returns the only key of a function of the façade, the root of a partition, and the namespace.
local function root_of(keys)
  local root = keys[1]
  if #keys ~= 1 then
    reject("INVALID", "give one key, the root of a partition, such as curfew:{0}; there are " .. #keys)
  end
  local namespace, partition = string.match(root, "^(%w[%w._:-]*):{(%d+)}$")
  if not namespace or #namespace > 128 or not is_partition(partition) then
    reject("INVALID", 'the key "' .. clip(root) .. '" is not the root of a partition: use a name, a colon and the number in braces, such as curfew:{0}')
  end
  return root, namespace
end

-- id_of returns the id of a task from an argument. The task must belong to the partition of the key.
--
--   prefix  the beginning of an error; absent: ""
local function id_of(text, root, prefix)
  local partition = text and #text <= 640 and string.match(text, "^(%d+)%-%w[%w._!-]*$")
  if partition and partition == string.match(root, "{(%d+)}$") then
    return text
  elseif not partition or not is_partition(partition) then
    reject("INVALID", (prefix or "") .. 'the id "' .. clip(text or "") .. '" is not the id of a task: it is the partition, a dash, letters and digits, such as 0-01J9ZK3Q8X4M2C7W5T')
  end
  reject("PARTITION", (prefix or "") .. clip(text) .. " belongs to partition " .. partition .. ": use the key " .. string.gsub(root, "%d+}$", partition .. "}"))
end

local function check_word(word, name)
  if #word > 128 or not string.find(word, "^%w[%w._:@+/=-]*$") then
    reject("INVALID", name .. ' "' .. clip(word) .. '" must be 1 to 128 of A-Z a-z 0-9 . _ : @ + / = - and begin with a letter or digit')
  end
  return word
end

-- word_of returns an argument that is one word, such as the id of a call, or its default.
local function word_of(args, name, default)
  return check_word(args[name] or default, name)
end

-- worker_of returns the name of the calling worker or reaper.
--
--   role  worker or reaper
local function worker_of(argv, role)
  return check_word(first(argv, "the name of the " .. role), "the " .. role)
end

-- count_of returns an argument that is a whole number, as a text.
local function count_of(args, name, default, least, most)
  local text = args[name] or default
  if not whole(text, least, most) then
    reject("INVALID", name .. ' "' .. clip(text) .. '" must be a whole number from ' .. least .. " to " .. (most or "2^53"))
  end
  return text
end

local units = {ms = 1, s = 1000, m = 60000, h = 3600000, d = 86400000}
local longest = 9223372036854 -- ms: 292 years, the limit of a duration in Go

-- ms_of returns a duration in ms, or nil and whether it is finer than 1 ms.
local function ms_of(text)
  local sum, at = 0, 1
  repeat
    local integer, fraction, unit, behind = string.match(text, "^(%d*)%.?(%d*)(%a+)()", at)
    local size = units[unit]
    if not size or integer == "" and fraction == "" or unit == "d" and at > 1 then -- as in Go, days come first
      return nil
    end
    sum, at = sum + (tonumber(integer) or 0) * size, behind
    if fraction ~= "" then
      local parts, scale = tonumber(fraction) * size, 10 ^ #fraction
      if #fraction > 8 or parts % scale ~= 0 then -- 8 digits of a day fit into the 53 bits of a number
        return nil, true
      end
      sum = sum + parts / scale
    end
  until at > #text
  return sum
end

-- span reads a duration as people write it (500ms, 30s, 1h30m, 1.5h, 1d12h), and returns its ms as a text.
local function span(text, field, prefix)
  local ms, finer
  if text == "0" then
    ms = 0
  elseif #text <= 64 then
    ms, finer = ms_of(text)
  end
  if ms and ms <= longest then
    return string.format("%d", ms)
  end
  local fault = "is not a duration: write a number and a unit (ms, s, m, h or d), such as 30s, 1h30m or 1d"
  if ms then
    fault = "is longer than 106751d"
  elseif finer then
    fault = "is finer than 1 ms"
  elseif string.find(text, "^%d+$") then
    fault = "has no unit: write " .. clip(text) .. "s, or give " .. field .. "_ms in ms"
  end
  reject("INVALID", prefix .. field .. ' "' .. clip(text) .. '" ' .. fault)
end

local function duration_text(ms)
  return ms == 0 and "0s" or ms % 3600000 == 0 and ms / 3600000 .. "h" or ms .. "ms"
end

-- span_of returns an argument that is a duration, in ms, as a text: name as 30s, or name_ms as 30000.
local function span_of(args, name, default, least, most)
  local text, in_ms = args[name], name .. "_ms"
  if text and args[in_ms] then
    reject("INVALID", "give " .. name .. " or " .. in_ms .. ", and not both")
  elseif not text then
    return count_of(args, in_ms, default, least, most)
  end
  local ms = span(text, name, "")
  if not whole(ms, least, most) then
    reject("INVALID", name .. ' "' .. clip(text) .. '" must be from ' .. duration_text(least) .. " to " .. duration_text(most))
  end
  return ms
end

-- call_of returns the id of this call. Without the argument `call` it is derived from the instant and the arguments, so that a later
-- call with the same arguments is no repeat.
local function call_of(args, root, argv)
  return args.call and word_of(args, "call") or string.format("%d-", now(root)) .. redis.sha1hex(table.concat(argv, "\n"))
end
