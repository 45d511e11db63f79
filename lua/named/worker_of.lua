-- worker_of returns the name of the worker or reaper that calls.
--
--   what  worker or reaper
--
-- @use named/clip
-- @use named/first
-- @use named/reject
local function worker_of(argv, what)
  local name = first(argv, "the name of the " .. what)
  if #name > 128 or not string.find(name, "^%w[%w._:@+/=-]*$") then
    reject("INVALID", "the " .. what .. ' "' .. clip(name) .. '" must be 1 to 128 of A-Z a-z 0-9 . _ : @ + / = - and begin with a letter or digit')
  end
  return name
end
