-- lags is how many ms late each timeout was written, of those among the newest 200 events, with spaces between
-- them; nil if there are none.
--
-- @use explain/ask
local function lags(tx)
  local found = {}
  for _, event in ipairs(ask("XREVRANGE", tx.key.events, "+", "-", "COUNT", 200) or {}) do
    local values = event[2]
    for i = 1, #values - 1, 2 do
      if values[i] == "lag_ms" then
        found[#found + 1] = values[i + 1]
      end
    end
  end
  return found[1] and table.concat(found, " ")
end
