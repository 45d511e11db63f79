-- answer returns the reply of a call that wrote something, with what the call has to report (store/tell.lua). If a
-- command failed, it raises that error instead: by then everything else is written.
--
-- @use store/tell
local function answer(tx, reply)
  if tx.failed[1] then
    error(tx.failed[1], 0)
  end
  return tell.reply(tx, reply)
end
