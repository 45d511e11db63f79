-- control: a client sets the controls of a queue: pause it, limit its running tasks, its rate, or the
-- length of its line. The controls apply in this partition only.
--
-- ARGV[1]  queue
-- ARGV[2…] name, value, …; an empty value removes the control. Controls that are not named stay as they are.
--            paused                 1
--            max_running            tasks that may run at once, at least 1
--            max_length             tasks that may be in line; more root tasks are refused (task/plan.lua), at least 1
--            rate, per_ms, burst    rate tasks in per_ms ms, and up to burst tasks at once; set all three or none
--
-- Returns  {"OK", known, ready}     known is 1 if the queue existed before, 0 if this call made it (a repeat
--                                   gets 1); ready is the number of tasks in line
--          {"INVALID", field, why}  nothing was changed
-- Flags    allow-oom        a full Redis must still be paused
--
-- @use check/values: names, whole
-- @use queue/controls: change_controls, controlled
-- @use queue/queue: wake
-- @use store/events: emit
-- @use store/index
-- @use store/later
-- @use store/tell: answer
-- @use store/tx: begin, read_root
-- @use unit/unit

local control_names = {paused = true, max_running = true, max_length = true, rate = true, per_ms = true, burst = true}

-- controls checks the controls of a queue. It returns the invalid control and the error, or nil.
local function controls(asked)
  for name, value in pairs(asked) do
    if not control_names[name] then
      return string.sub(name, 1, 128), "is not a control of a queue"
    elseif value ~= "" and not whole(value, 1) then
      return name, "must be a whole number of at least 1, or empty to remove the control"
    end
  end
  for _, name in ipairs({"per_ms", "burst"}) do
    if (asked.rate == nil) ~= (asked[name] == nil) or (asked.rate == "") ~= (asked[name] == "") then
      return "rate", "needs per_ms and burst: give all three, or none"
    end
  end
end

local function control_queue(tx, queue, asked, argv)
  local key, about = tx.key, tx.key.queue .. queue
  redis.call("ZCARD", key.throttled) -- raises an error before any decision if a key has the wrong type
  redis.call("LLEN", key.wake .. queue)
  local ready = redis.call("ZCARD", key.ready .. queue)
  local existed = redis.call("SISMEMBER", key.queues, queue)
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
    local settings = string.gsub(table.concat(argv, " ", 2), "(%S+) (%S*)", "%1=%2")
    emit(tx, "all", "queue_controlled", {id = "-", queue = queue}, settings)
  end
  return {"OK", existed, ready}
end

local function control(keys, argv)
  local queue, asked = argv[1], {}
  local field, fault = names.queue(queue)
  if field then
    return {"INVALID", field, fault}
  elseif #argv % 2 == 0 then
    return {"INVALID", argv[#argv], "has no value: give an empty value to remove the control"}
  end
  for i = 2, #argv, 2 do
    if asked[argv[i]] then
      return {"INVALID", argv[i], "is given twice"}
    end
    asked[argv[i]] = argv[i + 1]
  end
  field, fault = controls(asked)
  if field then
    return {"INVALID", field, fault}
  end
  local tx = read_root(begin(keys[1]))
  return answer(tx, unit(tx, control_queue, queue, asked, argv))
end
