-- span_of returns an option that is a duration in ms, as a text: name as 30s, or name_ms as 30000.
--
-- @use named/count_of
-- @use named/reject
-- @use named/span
local function span_of(given, name, absent, least, most)
  if given[name] and given[name .. "_ms"] then
    reject("INVALID", "give " .. name .. " or " .. name .. "_ms, and not both")
  end
  local ms = given[name] and span(given[name], name, "") or given[name .. "_ms"] or absent
  return count_of({[name .. "_ms"] = ms}, name .. "_ms", "", least, most)
end
