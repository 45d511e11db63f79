-- The members of a new wait.
--
-- @use agent/count: nearest_patience
-- @use store/index
-- @use store/later
-- @use store/state: owner
-- @use task/plan: look_for_existing, plan

-- pick_members removes duplicate members, and sets the name of each, the last part of its id. It returns a refusal if a member
-- is no child of this agent.
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

-- drop_earlier removes the members that an earlier part of the wait has sent already.
--
--   earlier  their names, separated by spaces
local function drop_earlier(s, earlier)
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

-- plan_children checks the children to create. It returns the new ones, each {task, draft}, or nil and a refusal.
local function plan_children(tx, s)
  local children, twice = {}, {}
  look_for_existing(tx, s.children)
  for n, child in ipairs(s.children) do
    local refusal, d = plan(tx, child)
    if refusal and refusal[1] ~= "OK" then
      return nil, {"CHILD", n, unpack(refusal)}
    elseif owner(child.id) ~= s.id then
      return nil, {"FOREIGN", string.sub(child.id, 1, 1024)}
    elseif twice[child.id] then
      return nil, {"CHILD", n, "INVALID", "id", "is given twice"}
    end
    twice[child.id] = true
    if d then
      children[#children + 1] = {task = child, draft = d}
    end
  end
  return children
end

-- enlist stores the pending and the ended members. It returns the nearest limit of a single member or nil, and fields of the
-- wait: the masks of members, and whether there are masks or limits, so that waits without them cost no reads.
local function enlist(tx, s, c)
  local id, key = s.id, tx.key
  local kept = not c.patience_dropped
  local nearest, masks = kept and nearest_patience(tx, id) or nil, {}
  for _, m in ipairs(s.members) do
    if not m.counted then
      index.add(tx, key.pending .. id, string.format("%d", (3 - m.priority) * 16777216 + c.size + m.place), m.name)
    end
    if m.patience and not (kept and redis.call("ZSCORE", key.patience .. id, m.name)) then
      local ends = tx.at + m.patience
      index.add(tx, key.patience .. id, string.format("%d", ends), m.name)
      nearest = math.min(nearest or ends, ends)
    end
    if m.mask then
      masks[#masks + 1], masks[#masks + 2] = "mask " .. m.name, m.mask
    end
  end
  for _, name in ipairs(c.names) do
    later.push(tx, key.settled .. id, name)
  end
  if masks[1] then
    masks[#masks + 1], masks[#masks + 2] = "masks", "1"
  end
  if nearest then
    masks[#masks + 1], masks[#masks + 2] = "patient", "1"
  end
  return nearest, masks
end
