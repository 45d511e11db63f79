-- draw takes up to `want` tasks from a queue. Some tasks in line are late: they are ended and not given out, and draw
-- continues with the next. But a line of late tasks must not hold up the server or the other queues. So in each
-- round it reads from a queue as many tasks as the queue can give, and its share of 100 more.
--
-- @use store/record
-- @use store/try
-- @use queue/free_slots
-- @use queue/use_rate
-- @use task/take
local function draw(tx, ask, got, queue, want)
  local key, free = tx.key.ready .. queue, free_slots(tx, queue)
  local given = math.min(want, free.n, got.left)
  local taken, from = 0, got.from[queue] or 0
  local looks, page = math.min(given + got.share, got.looks), given
  while taken < given and looks > 0 and not got.full do
    local ids = try(tx, "ZRANGE", key, from, from + math.min(page, looks) - 1)
    if not ids or #ids == 0 then
      got.empty[queue] = ids ~= nil
      break
    end
    if not got.checked then -- the claims must be readable before anything is decided
      tx.on, got.checked = false, true
      redis.call("ZCARD", tx.key.claims .. ask.worker)
    end
    from, looks, got.looks = from + #ids, looks - #ids, got.looks - #ids
    record.load(tx, ids)
    for _, id in ipairs(ids) do
      tx.on = id
      if got.full or taken == given then
        from = from - 1
      elseif take(tx, id, key, ask, got) then
        taken = taken + 1
      end
    end
    page = taken == 0 and 2 * page or given - taken
  end
  got.from[queue], got.left = from, got.left - taken
  use_rate(tx, queue, free, taken)
end
