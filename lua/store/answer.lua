-- answer returns the reply of a call that wrote something. If a command failed, it raises that error instead: by then
-- everything else is written.
local function answer(tx, reply)
  if tx.failed[1] then
    error(tx.failed[1], 0)
  end
  return reply
end
