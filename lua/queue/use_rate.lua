-- use_rate subtracts the tasks that a queue gave, so that it gives no more than its rate allows.
--
-- @use store/later
local function use_rate(tx, queue, free, n)
  free.n = free.n - n
  if free.every and n > 0 then
    free.full_at = free.full_at + n * free.every
    later.after(tx, "HSET", tx.key.queue .. queue, "full_at", string.format("%.3f", free.full_at))
  end
end
