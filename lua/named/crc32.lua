-- crc32 returns the IEEE checksum of a text.
local halves = {[0] = 0, 498536548, 997073096, 651767980, 1994146192, 1802195444, 1303535960, 1342533948, 3988292384, 4027552580,
  3604390888, 3412177804, 2607071920, 2262029012, 2685067896, 3183342108}

-- slow_xor serves servers without the library of bits.
local function slow_xor(a, b)
  local sum, power = 0, 1
  for _ = 1, 32 do
    local x, y = a % 2, b % 2
    if x ~= y then
      sum = sum + power
    end
    a, b, power = (a - x) / 2, (b - y) / 2, 2 * power
  end
  return sum
end

local function fast_xor(a, b)
  return bit.bxor(a, b) % 4294967296 -- it returns signed numbers
end

-- add_half adds the lower four bits of a number.
local function add_half(xor, c, half)
  return xor(halves[xor(c % 16, half)], (c - c % 16) / 16)
end

local function crc32(text)
  local xor = pcall(fast_xor, 0, 0) and fast_xor or slow_xor
  local c = 4294967295
  for i = 1, #text do
    local byte = string.byte(text, i)
    c = add_half(xor, add_half(xor, c, byte % 16), (byte - byte % 16) / 16)
  end
  return xor(c, 4294967295)
end
