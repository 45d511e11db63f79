-- own returns a table of tx that the caller is about to change. Fields that few calls need start as an empty table
-- that all calls share (store/begin.lua): making twenty tables would be most of the cost of a small call.
local function own(tx, name)
  local mine = tx[name]
  if mine == tx.none then
    mine = {}
    tx[name] = mine
  end
  return mine
end
