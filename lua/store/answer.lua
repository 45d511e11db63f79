-- answer is the reply of a call that wrote something: where something could not be written, that is raised,
-- now that everything else is written.
local function answer(tx, reply)
  if tx.failed[1] then
    error(tx.failed[1], 0)
  end
  return reply
end
