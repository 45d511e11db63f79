-- thresholds returns what a wait of n members fires at: how many that are ok, how many that are bad, and how many that
-- have ended. If a field is wrong, the fourth and fifth value are the field and why. The third value is at most n, so
-- that the last end always fires the wait.
--
--   mode  all, settled   the last member
--         fail_fast      the last, or the first that is bad
--         any            the first, however it ended
--         any_ok         the first that is ok
--         n_of_m         `need` that are ok, or fewer than `need` can still be ok
--         n_settled      `need` of them, however they ended
--         peek           at once
--         collect        the first end of any child that the agent was not given yet; it has no members (wait/ends.lua)
local function thresholds(mode, n, need)
  if mode == "all" or mode == "settled" then
    return nil, nil, n
  elseif mode == "fail_fast" then
    return nil, n > 0 and 1 or nil, n
  elseif mode == "peek" then
    return nil, nil, 0
  elseif mode == "collect" then
    if n > 0 then
      return nil, nil, nil, "mode", "is for all children of the agent, without members: leave them out"
    end
    return nil, nil, 1
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
  return nil, nil, nil, "mode", "must be all, fail_fast, settled, any, any_ok, n_of_m, n_settled, peek or collect"
end
