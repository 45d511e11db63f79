-- room is how many tasks a queue may give now. A queue without controls gives what it
-- has; one that is paused, has max_running tasks running, or has given what its rate
-- allows, gives none. It is read once between two flushes; who takes tasks counts them
-- off by spend.
--
-- The rate is a bucket of `burst` tokens, one a task, that gets `rate` of them back
-- every per_ms. Stored is only when it will be full again, full_at.
--
-- Returns {n, every, full_at, next}: every is ms a token, nil without a rate; next is
-- when the bucket has a token again, if that is what it lacks.
--
-- @include root
-- @include write
local function room(k, queue, at)
  root(k)
  local free = k.rooms[queue]
  if free then
    return free
  end
  free = {n = math.huge}
  k.rooms[queue] = free
  if not k.controlled then
    return free
  end
  local c = write(k, "HMGET", k.queue .. queue, "paused", "running", "max_running", "rate", "per_ms", "burst", "full_at")
  if c == 0 or c[1] then -- nobody knows whether a queue that cannot be read is paused
    free.n = 0
    return free
  end
  if c[3] then
    free.n = math.max(c[3] - (c[2] or 0), 0)
  end
  if c[4] then
    free.every = c[5] / c[4]
    local whole = c[6] * free.every
    free.full_at = math.max(tonumber(c[7]) or 0, at)
    if free.full_at > at + whole then -- further off than if it were empty: the clock was set back
      free.full_at = at + whole
      write(k, "HSET", k.queue .. queue, "full_at", string.format("%.3f", free.full_at))
    end
    -- full_at is stored in thousandths, so a token counts a little before it is whole.
    local near = math.min(0.01, free.every / 100)
    local tokens = math.floor((whole - (free.full_at - at) + near) / free.every)
    if tokens < 1 and free.n > 0 then
      free.next = math.ceil(free.full_at - whole + free.every - near)
    end
    free.n = math.min(free.n, tokens)
  end
  return free
end
