-- span_of returns an option that is a duration in ms, as a text: name as 30s, or name_ms as 30000.
--
-- @use check/whole
-- @use named/clip
-- @use named/count_of
-- @use named/reject
-- @use named/span
local function says(ms)
  return ms == 0 and "0s" or ms % 3600000 == 0 and ms / 3600000 .. "h" or ms .. "ms"
end

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
