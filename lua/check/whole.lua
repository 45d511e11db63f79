-- whole converts a text of digits to a number of up to 2^53. It returns nil for any other text. Long numbers are
-- compared as text, since a double cannot hold 2^53 + 1.
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
