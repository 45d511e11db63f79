-- lags returns how many ms late each timeout among the newest 200 events was written, newest first, separated by
-- spaces. It returns nil if there are none.
--
-- @use explain/ask

-- late returns the lags in an entry of the stream, and how many events it has.
local function late(text)
  local found, n = {}, 0
  for line in string.gmatch(text, "[^\n]+") do
    found[#found + 1] = string.match(line, " lag_ms=(%d+)")
    n = n + 1
  end
  return found, n
end

local function lags(tx)
  local found, left, before = {}, 200, "+"
  while left > 0 do
    local entries = ask("XREVRANGE", tx.key.events, before, "-", "COUNT", 10) or {}
    for _, entry in ipairs(entries) do
      local values = entry[2]
      local some, n = late(values[5] == "events" and values[6] or "")
      for i = #some, 1, -1 do
        found[#found + 1] = some[i]
      end
      left, before = left - math.max(n, 1), "(" .. entry[1]
    end
    if #entries < 10 then
      break
    end
  end
  return found[1] and table.concat(found, " ")
end
