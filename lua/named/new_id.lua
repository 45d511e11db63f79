-- new_id makes the id of a task: the partition, a dash, 9 base-32 digits of the time in ms and 7 of a counter that the
-- root keeps, so that ids sort by the time they were made, and each is unique.
local alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

local function digits(n, width)
  local text = ""
  for _ = 1, width do
    local digit = n % 32
    text, n = string.sub(alphabet, digit + 1, digit + 1) .. text, (n - digit) / 32
  end
  return text
end

--   n  of the counter, from 1
local function new_id(tx, n)
  return tx.key.partition .. "-" .. digits(tx.at, 9) .. digits(n, 7)
end
