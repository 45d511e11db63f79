-- control: somebody says how much a queue may give: nothing (paused), to so many running tasks at once, so many
-- in a time. The controls hold in this partition.
--
-- ARGV[1]  queue
-- ARGV[2…] name, value, …; "" takes a control away. What is not named stays.
--            paused                 1
--            max_running            tasks running at once, at least 1
--            rate, per_ms, burst    so many tasks in so many ms, and at once after a rest; all three or none
--
-- Returns  {"OK", known, ready}     known is 1 if the queue was there before, 0 if this call made it (a repeat
--                                   finds it there); ready is how many tasks stand in line
--          {"INVALID", field, why}  nothing was changed
-- Flags    allow-oom        a full Redis must still be paused
--
-- @use check/controls
-- @use check/names
-- @use store/answer
-- @use store/begin
-- @use store/emit
-- @use store/index
-- @use store/later
-- @use store/read_root
-- @use store/unit
-- @use queue/change_controls
-- @use queue/controlled
-- @use queue/wake

local function control_queue(tx, queue, asked, argv)
  local key, about = tx.key, tx.key.queue .. queue
  redis.call("ZCARD", key.throttled) -- all must be readable before anything is decided
  redis.call("LLEN", key.wake .. queue)
  local ready = redis.call("ZCARD", key.ready .. queue)
  local known = redis.call("SISMEMBER", key.queues, queue)
  later.before(tx, "SADD", key.queues, queue)
  local changed = change_controls(tx, asked, about)
  tx.root.controlled = controlled(tx, queue, asked)
  if tx.root.controlled then
    later.before(tx, "HSET", key.root, "controlled", "1")
  else
    later.before(tx, "HDEL", key.root, "controlled")
  end
  index.remove(tx, key.throttled, queue)
  later.after(tx, "DEL", key.wake .. queue)
  if ready > 0 then
    wake.note(tx, queue)
  end
  if changed then
    local told = string.gsub(table.concat(argv, " ", 2), "(%S+) (%S*)", "%1=%2")
    emit(tx, "all", "queue_controlled", {id = "-", queue = queue}, told)
  end
  return {"OK", known, ready}
end

local function control(keys, argv)
  local queue, asked = argv[1], {}
  local field, why = names.queue(queue)
  if field then
    return {"INVALID", field, why}
  elseif #argv % 2 == 0 then
    return {"INVALID", argv[#argv], "has no value; give an empty one to take it away"}
  end
  for i = 2, #argv, 2 do
    if asked[argv[i]] then
      return {"INVALID", argv[i], "is given twice"}
    end
    asked[argv[i]] = argv[i + 1]
  end
  field, why = controls(asked)
  if field then
    return {"INVALID", field, why}
  end
  local tx = read_root(begin(keys[1]))
  return answer(tx, unit(tx, control_queue, queue, asked, argv))
end
