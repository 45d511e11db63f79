-- thresholds are what a wait of n members fires at: enough that are ok, too many that are bad, or so many
-- that have settled; instead, as its fourth and fifth value, the field that is wrong and why. The last
-- one is n at the most, so that the last settlement always fires.
--
--   mode  all, settled   the last member
--         fail_fast      the last, or the first that is bad
--         any            the first, however it ended
--         any_ok         the first that is ok
--         n_of_m         `need` that are ok, or none of them possible any more
--         n_settled      `need` of them, however they ended
--         peek           at once
local function thresholds(mode, n, need)
  if mode == "all" or mode == "settled" then
    return nil, nil, n
  elseif mode == "fail_fast" then
    return nil, n > 0 and 1 or nil, n
  elseif mode == "peek" then
    return nil, nil, 0
  elseif mode == "any" or mode == "any_ok" then
    if n == 0 then
      return nil, nil, nil, "members", (mode == "any" and "select" or "select_ok") .. " requires at least one future"
    elseif mode == "any" then
      return nil, nil, 1
    end
    return 1, nil, n
  elseif mode == "n_of_m" or mode == "n_settled" then
    if not need or need > n then
      return nil, nil, nil, "need", "must be a whole number from 0 to " .. n .. ", the number of different members"
    elseif mode == "n_settled" then
      return nil, nil, need
    elseif need == 0 then
      return nil, nil, 0
    end
    return need, n - need + 1, n
  end
  return nil, nil, nil, "mode", "must be all, fail_fast, settled, any, any_ok, n_of_m, n_settled or peek"
end
