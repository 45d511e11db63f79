-- enlist stores the members that are pending, and those that have ended. It returns the nearest limit of a member in
-- the wait, nil if none has one, and a list of names and values: the masks of members, and the marks that there are
-- masks or limits.
--
-- @use store/index
-- @use store/later
-- @use agent/nearest_patience
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
