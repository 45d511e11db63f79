-- free_slots returns how many tasks a queue can give now. A queue without controls has no limit. A queue gives none
-- if it is paused, if max_running tasks run, or if its rate is used up. The record is read once a unit; use_rate
-- subtracts what was given.
--
-- The rate is a bucket of `burst` tokens, one for each task. Every per_ms ms it gets `rate` of them back. Only
-- full_at is stored: the instant at which the bucket is full again.
--
-- Returns {n, every, full_at, next}: every is ms for each token, nil without a rate; next is when the bucket has a
-- token again, if only a token is missing
--
-- @use store/later
-- @use store/own
-- @use store/try
local function rate(tx, queue, free, c)
  free.every = c[5] / c[4]
  local whole = c[6] * free.every
  free.full_at = math.max(tonumber(c[7] or nil) or 0, tx.at)
  if free.full_at > tx.at + whole then -- later than for an empty bucket: the clock was set back
    free.full_at = tx.at + whole
    local write = tx.stale and try or later.after -- queue/wake.lua runs after commit
    write(tx, "HSET", tx.key.queue .. queue, "full_at", string.format("%.3f", free.full_at))
  end
  -- full_at is stored in thousandths of a ms, so a token counts slightly before it is whole.
  local near = math.min(0.01, free.every / 100)
  local tokens = math.floor((whole - (free.full_at - tx.at) + near) / free.every)
  if tokens < 1 and free.n > 0 then
    free.next = math.ceil(free.full_at - whole + free.every - near)
  end
  free.n = math.min(free.n, tokens)
end

local function free_slots(tx, queue)
  local free = tx.rooms[queue]
  if free then
    return free
  end
  free = {n = math.huge}
  own(tx, "rooms")[queue] = free
  if not tx.root.controlled then
    return free
  end
  local c = try(tx, "HMGET", tx.key.queue .. queue, "paused", "running", "max_running", "rate", "per_ms", "burst", "full_at")
  if not c or c[1] then -- a queue that cannot be read counts as paused
    free.n = 0
    return free
  end
  if c[3] then
    free.n = math.max(c[3] - (c[2] or 0), 0)
  end
  if c[4] then
    rate(tx, queue, free, c)
  end
  return free
end
