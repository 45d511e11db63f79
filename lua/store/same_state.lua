-- same_state reports whether the states of two tasks are the same text, so that the text is made once. Tasks that never
-- ran and end together often have the same state. It returns false if either has its body in a key of its own.
local function same_state(a, b)
  local names, others = a.rich, b.rich
  if a.completed_at ~= b.completed_at or a.status ~= b.status or a.error ~= b.error or a.result ~= b.result or
    a.epoch ~= b.epoch or a.worker ~= b.worker or a.started_at ~= b.started_at or a.retries ~= b.retries or a.call ~= b.call or
    a.unknown or b.unknown or a.body_bytes or b.body_bytes or not names or not others or #names ~= #others then
    return false
  end
  for i, name in ipairs(names) do
    if others[i] ~= name or a[name] ~= b[name] then
      return false
    end
  end
  return true
end
