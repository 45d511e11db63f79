-- spend counts off what a queue gave, so that it gives no more than it may.
--
-- @include write
local function spend(k, queue, free, n)
  free.n = free.n - n
  if free.every and n > 0 then
    free.full_at = free.full_at + n * free.every
    write(k, "HSET", k.queue .. queue, "full_at", string.format("%.3f", free.full_at))
  end
end
