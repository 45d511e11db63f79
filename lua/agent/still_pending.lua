-- still_pending returns the given members that are pending in the wait, with their places in it.
--
-- @use agent/drop_patience
local function still_pending(tx, id, w, members)
  local kept = {}
  for _, m in ipairs(members) do
    local score = not w.gone[m.name] and redis.call("ZSCORE", tx.key.pending .. id, m.name)
    if score then
      m.place = score % 16777216
      kept[#kept + 1] = m
    elseif m.patience then
      drop_patience(tx, id, w, m.name)
    end
  end
  return kept
end
