-- plain returns the reply of a call without what it has to report (store/tell.lua): callers of the façade write no log
-- of other tasks.
local function plain(reply)
  return reply[1] == "told" and reply[3] or reply
end
