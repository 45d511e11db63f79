-- repair_journal counts the bytes of an agent's journal again. A journal that the record of its task does not have goes.
--
-- @use store/later
-- @use check/digits
-- @use repair/mend
local function repair_journal(tx, s, r, task)
  if not task.journal then
    mend.drop(tx, r, "journal:" .. task.id)
    return
  end
  local key, size, counted = tx.key.journal .. task.id, 0, nil
  local flat = redis.call("HGETALL", key)
  for i = 1, #flat, 2 do
    if flat[i] == "bytes" then
      counted = tonumber(flat[i + 1])
    elseif digits(flat[i]) then
      size = size + #flat[i + 1]
    end
  end
  s.size = s.size + size
  if flat[1] and (counted or 0) ~= size then
    later.before(tx, "HSET", key, "bytes", string.format("%d", size))
    r[#r + 1] = "count journal:" .. task.id .. " again"
  end
end
