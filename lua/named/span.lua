-- span reads a duration as people write it (500ms, 30s, 1h30m, 1.5h, 1d12h), and returns its ms as a text.
--
--   field  its name, for the error
--   what   how the error begins: "" or "task 3: "
--
-- @use named/clip
-- @use named/reject
local units = {ns = 1, us = 1000, ["µs"] = 1000, ["μs"] = 1000, ms = 1000000, s = 1000000000, m = 60000000000, h = 3600000000000}
local most = 9223372036854 -- ms, which is 292 years: what a duration of Go can hold

-- part returns one number and its unit as whole ms and the ns beside them, as Go reads it, or nil. A number can have 15
-- digits before the point, which Lua holds exactly. Digits behind the point that are less than a ns do not count.
local function part(whole, point, fraction, unit)
  if unit == "d" then
    local ms, ns = part(whole, point, fraction, "h")
    return ms and ms * 24, ns and ns * 24
  end
  local size, n, behind = units[unit], string.match(whole, "^0*(%d*)$"), string.sub(fraction, 1, 15)
  if not size or #n > 15 or point == "" and fraction ~= "" or whole .. fraction == "" then
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
    local whole, point, fraction, unit, next = string.match(text, "^(%d*)(%.?)(%d*)([%a\194\206\181\188]+)()", at)
    local ms, ns
    if whole then
      ms, ns = part(whole, point, fraction, unit)
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
