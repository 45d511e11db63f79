-- whole reads a whole number of ms, tasks and the like: digits alone, and a value up to 2^53. It is nil for
-- anything else. A number is compared as text, since 2^53 + 1 is no double.
--
--   least, most  the bounds; nil: 0 and 2^53
local function whole(text, least, most)
  if not text or not string.find(text, "^%d+$") then
    return nil
  end
  if #text > 15 then
    local digits = string.match(text, "^0*(%d+)$")
    if #digits > 16 or #digits == 16 and digits > "9007199254740992" then
      return nil
    end
  end
  local n = tonumber(text)
  if n >= (least or 0) and n <= (most or 9007199254740992) then
    return n
  end
end
