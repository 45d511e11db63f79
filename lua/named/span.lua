-- span reads a duration as people write it, 500ms, 30s, 1h30m, 1.5h or 1d12h, and returns its ms as a text.
--
--   field  its name, for the error
--   what   what the error begins with: "" or "task 3: "
--
-- @use named/clip
-- @use named/reject
local units = {ns = 1, us = 1000, ["µs"] = 1000, ["μs"] = 1000, ms = 1000000, s = 1000000000, m = 60000000000, h = 3600000000000,
  d = 86400000000000}
local most = 9223372036854 -- ms, which is 292 years: what a duration of Go can hold

-- part is one number and its unit, in ns, or nil.
local function part(whole, point, fraction, unit)
  if not units[unit] or whole == "" and fraction == "" or point == "" and fraction ~= "" or #whole + #fraction > 15 then
    return nil
  end
  return tonumber(whole .. fraction, 10) * units[unit] / 10 ^ #fraction
end

local function ms_of(text)
  local sum, at, days = 0, 1, true
  while at <= #text do
    local whole, point, fraction, unit, next = string.match(text, "^(%d*)(%.?)(%d*)([%a\194\206\181\188]+)()", at)
    local ns = whole and part(whole, point, fraction, unit)
    if not ns or unit == "d" and not days then
      return nil
    end
    sum, at, days = sum + ns / 1000000, next, false -- days come first
  end
  return sum
end

local function span(text, field, what)
  local ms = text ~= "" and #text <= 64 and ms_of(text)
  if text == "0" then
    ms = 0
  end
  local why
  if string.find(text, "^%d+$") and text ~= "0" then
    why = "has no unit: write " .. clip(text) .. "s, or give " .. field .. "_ms in ms"
  elseif not ms then
    why = "is not a duration: write a number and a unit (ms, s, m, h or d), such as 30s, 1h30m or 1d"
  elseif ms > most then
    why = "is longer than 106751d"
  elseif ms % 1 ~= 0 then
    why = "is finer than 1 ms"
  end
  if why then
    reject("INVALID", what .. field .. ' "' .. clip(text) .. '" ' .. why)
  end
  return string.format("%d", ms)
end
