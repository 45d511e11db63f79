-- word_of returns an option that is one word, such as the id of a call, or its default.
--
-- @use named/clip
-- @use named/reject
local function word_of(given, name, absent)
  local word = given[name] or absent
  if #word > 128 or not string.find(word, "^%w[%w._:@+/=-]*$") then
    reject("INVALID", name .. ' "' .. clip(word) .. '" must be 1 to 128 of A-Z a-z 0-9 . _ : @ + / = - and begin with a letter or digit')
  end
  return word
end
