-- verdict returns the journal entry of a wait that is over: how, which member decided, when, the digest and
-- label of the wait, its members, and those that had ended, in the order they ended. It is stored, and
-- never computed again.
local function verdict(w, reason, winner, instant, settled)
  return "wait " .. reason .. " " .. (winner or "-") .. " " .. string.format("%d", instant) .. " " .. w.digest .. "\n" ..
    w.label .. "\n" .. w.members .. "\n" .. table.concat(settled, " ")
end
