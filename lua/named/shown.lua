-- shown returns a name of an argument for a sentence: as it is, or in quotation marks if it is not a plain word.
--
-- @use named/clip
local function shown(name)
  return #name <= 64 and string.find(name, "^[%w_]+$") and name or '"' .. clip(name) .. '"'
end
