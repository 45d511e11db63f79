-- new_id makes the id of a task: the partition, a dash, 9 base-32 digits of the time in ms and 7 of the partition's
-- sequence (queue/place.lua), so that ids sort by the time they were made, and each is unique.
local alphabet = {[0] = "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "A", "B", "C", "D", "E", "F", "G", "H", "J", "K", "M", "N",
  "P", "Q", "R", "S", "T", "V", "W", "X", "Y", "Z"}

local function digits(n, width)
  local list = {}
  for i = width, 1, -1 do
    local digit = n % 32
    list[i], n = alphabet[digit], (n - digit) / 32
  end
  return table.concat(list)
end

local function new_id(tx)
  tx.seq = (tx.seq or tx.root.seq) + 1
  return tx.key.partition .. "-" .. digits(tx.at, 9) .. digits(tx.seq, 7)
end
