-- ready puts a PENDING task in line. Priority 3 goes first, then who came first;
-- who was given back goes to the front of its priority: it has waited before. Agents that
-- were woken go before that, and among them who woke first.
-- The attempt of who was woken goes on, and so does its limit (attempt_at).
--
-- @include root
-- @include later
-- @include limit
local function ready(k, task, at, front)
  root(k)
  k.lined = true
  local place
  if task.woken then
    k.seq = k.seq + 1
    place = k.seq - 281474976710656 -- 2^48: before all others of its priority, in the order they woke
  elseif front then
    k.front = k.front - 1
    place = k.front
  else
    k.seq = k.seq + 1
    place = k.seq
  end
  -- 2^50 places a priority: exact in a double, and years of work.
  local band = (3 - tonumber(task.priority or 0)) * 1125899906842624
  later(k, "ZADD", k.ready .. task.queue, task.id, string.format("%d", band + place))
  k.woken[task.queue] = true
  local instant = task.queue_timeout_ms and at + task.queue_timeout_ms
  local attempt = tonumber(task.attempt_at)
  if attempt and not (instant and instant < attempt) then
    instant = attempt
  end
  limit(k, task, instant)
end
