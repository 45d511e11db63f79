-- pick_members removes duplicate members, and names each by the last part of its id. It returns an answer if a member
-- is not a child of this agent.
--
-- @use store/owner
local function pick_members(s)
  local id, seen, kept = s.id, {}, {}
  for _, m in ipairs(s.members) do
    if owner(m.id) ~= id then
      if m.id == id or string.sub(id, 1, #m.id + 1) == m.id .. "." then
        return {"INVALID", "members", "cannot include " .. m.id .. ", the agent itself or one of its owners: it cannot end before the agent"}
      end
      return {"FOREIGN", string.sub(m.id, 1, 1024)}
    elseif m.patience and string.sub(m.id, #id + 2, #id + 3) == "s-" then
      return {"INVALID", "patience", "cannot be set for " .. m.id .. ", a signal, which no wait cancels: give the wait a limit"}
    elseif not seen[m.id] then
      seen[m.id] = true
      m.name = string.sub(m.id, #id + 2)
      kept[#kept + 1] = m
    end
  end
  s.members = kept
end
