-- count_of returns an option that is a whole number, as a text.
--
-- @use check/whole
-- @use named/clip
-- @use named/reject
local function count_of(given, name, absent, least, most)
  local text = given[name] or absent
  if not whole(text, least, most) then
    reject("INVALID", name .. ' "' .. clip(text) .. '" must be a whole number from ' .. least .. " to " .. (most or "2^53"))
  end
  return text
end
