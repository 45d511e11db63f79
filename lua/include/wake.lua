-- wake has one idle worker look at a queue, if the queue may give something: who takes
-- the token passes it on if more is ready. A paused queue wakes nobody, and one that
-- has enough running is woken for by whoever ends a task of it. One that lacks only a
-- token of its rate is put on the clock of throttled queues.
--
-- @include room
-- @include write
-- @include alarm
local function wake(k, queue, at)
  if k.controlled then
    local free = room(k, queue, at)
    if free.next then
      write(k, "ZADD", k.throttled, string.format("%d", free.next), queue)
      alarm(k, free.next)
    end
    if free.n < 1 then
      return
    end
  end
  if (k.tokens[queue] or write(k, "LLEN", k.wake .. queue)) == 0 then
    write(k, "RPUSH", k.wake .. queue, "1")
  end
end
