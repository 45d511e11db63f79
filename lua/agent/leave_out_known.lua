-- leave_out_known removes the members that an earlier part of the wait had.
--
--   earlier  their names, with spaces between them
local function leave_out_known(s, earlier)
  if earlier == "" then
    return
  end
  local seen, kept = {}, {}
  for name in string.gmatch(earlier, "%S+") do
    seen[name] = true
  end
  for _, m in ipairs(s.members) do
    if not seen[m.name] then
      kept[#kept + 1] = m
    end
  end
  s.members = kept
end
