-- verdict is what a journal says of a wait that is over: how, which member decided, when, the digest and
-- label that it was begun with, its members, and those that had settled, in the order they did. It is
-- never derived again.
local function verdict(w, reason, winner, instant, settled)
  return "wait " .. reason .. " " .. (winner or "-") .. " " .. string.format("%d", instant) .. " " .. w.digest .. "\n" ..
    w.label .. "\n" .. w.members .. "\n" .. table.concat(settled, " ")
end
