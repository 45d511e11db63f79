-- wake leaves a token for one idle worker of a queue that can give a task. The worker that takes the token leaves
-- another if more tasks are ready. A paused queue gets no token. Nor does a queue that has max_running tasks running:
-- the call that ends one of them leaves the token. A queue that lacks only a token of its rate is put on the
-- clock of throttled queues.
--
-- Tokens are written last, since they depend on the lines after commit.
--
-- @use store/alarm
-- @use store/own
-- @use store/try
-- @use queue/free_slots
local wake = {}

function wake.note(tx, queue)
  own(tx, "wakes")[queue] = true
end

--   tokens  how many wake tokens the queue has; true: unknown
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

-- pass_on checks the queues of a fetch, since the token that woke the worker can stand for many tasks. It sets
-- tx.more if these queues hold more.
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
  tx.rooms = tx.none -- commit has changed what queues can give
  if tx.asked then
    pass_on(tx)
  end
  for queue, tokens in pairs(tx.wakes) do
    wake_one(tx, queue, tokens)
  end
end
