-- wake has one idle worker look at a queue, if the queue may give something: whoever takes the token passes
-- it on if more is ready. A paused queue wakes nobody, and for one that has enough running whoever ends a
-- task of it wakes a worker. One that lacks only a token of its rate is put on the clock of throttled
-- queues.
--
-- It is written last: it looks at the lines as they are by then.
--
-- @use store/alarm
-- @use store/own
-- @use store/try
-- @use queue/free_slots
local wake = {}

function wake.note(tx, queue)
  own(tx, "wakes")[queue] = true
end

--   tokens  how many there are, if that is known; true if it is not
local function wake_one(tx, queue, tokens)
  if tx.root.controlled then
    local free = free_slots(tx, queue)
    if free.next then
      try(tx, "ZADD", tx.key.throttled, string.format("%d", free.next), queue)
      alarm.note(tx, free.next)
    end
    if free.n < 1 then
      return
    end
  end
  local key = tx.key.wake .. queue
  if tokens == 0 or tokens == true and try(tx, "LLEN", key) == 0 then
    try(tx, "RPUSH", key, "1")
  end
end

-- pass_on looks at the queues that a worker asked: the token that brought it may stand for many tasks. It
-- notes in tx.more whether they hold more.
local function pass_on(tx)
  for _, queue in ipairs(tx.asked) do
    local empty = tx.found_empty[queue] and not tx.wakes[queue]
    local ready = empty and 0 or try(tx, "ZCARD", tx.key.ready .. queue)
    if ready then
      if ready > 0 and free_slots(tx, queue).n > 0 then
        tx.more = true
      else
        try(tx, "DEL", tx.key.wake .. queue)
      end
      own(tx, "wakes")[queue] = ready > 0 or nil
    end
  end
  tx.asked = false
end

function wake.write(tx)
  tx.rooms = tx.none -- what they may give has changed
  if tx.asked then
    pass_on(tx)
  end
  for queue, tokens in pairs(tx.wakes) do
    wake_one(tx, queue, tokens)
  end
end
