-- own is a table of tx that the caller is about to change. What few calls need is an empty table that all
-- calls share until then (store/begin.lua), since to make twenty tables is most of what a small call costs.
local function own(tx, name)
  local mine = tx[name]
  if mine == tx.none then
    mine = {}
    tx[name] = mine
  end
  return mine
end
