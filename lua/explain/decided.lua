-- decided returns how a task ends if its time is up; or nil and why that cannot be decided.
--
-- @use store/reason
-- @use task/ending
local function decided(tx, task)
  local ok, over = pcall(ending, tx, task)
  if ok then
    return over
  end
  return nil, reason(over)
end
