-- write_waits writes the waits in which something was counted: one command for each wait and not for each end, since
-- a batch ends many members of one wait.
--
-- @use store/try
local function write_waits(tx)
  for id, w in pairs(tx.waits) do
    if w.changed then
      local words, n = w.fields, #w.fields
      local function put(name, value)
        if value then
          words[n + 1], words[n + 2] = name, value
          n = n + 2
        end
      end
      put("state", w.state)
      for _, name in ipairs({"ok", "bad", "settled"}) do
        put(name, string.format("%d", w[name]))
      end
      put("reason", w.reason)
      put("winner", w.winner)
      put("fired_at", w.fired_at and string.format("%d", w.fired_at))
      put("first_at", w.first_at)
      put("losers", w.losers)
      put("wait_deadline_at", w.ends and string.format("%d", w.ends))
      try(tx, "HSET", tx.key.wait .. id, unpack(words))
    end
  end
end
