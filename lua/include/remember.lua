-- remember writes entries into the journal of an agent. Its replay reads them instead of
-- doing again what they stand for. What is written once stays as it is.
--
--   entries  {number, text}, …; the number grows over the agent's whole life
local function remember(k, task, entries)
  local key, size = k.journal .. task.id, 0
  for _, entry in ipairs(entries) do
    if redis.call("HSETNX", key, string.format("%d", entry[1]), entry[2]) == 1 then
      size = size + #entry[2]
    end
  end
  if size > 0 then
    redis.call("HINCRBY", key, "bytes", size)
  end
  if #entries > 0 and not task.journal then
    redis.call("HSET", k.task .. task.id, "journal", "1")
    task.journal = "1"
  end
end
