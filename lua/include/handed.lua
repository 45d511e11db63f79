-- handed reads the tasks that a call hands over: for each how many fields it has, then
-- name and value of each. And it looks at every key that they will need: one of the
-- wrong type must be met before the first write, not after it.
--
--   script  whose call it is, for errors
--   first   where in args the tasks begin
--
-- @include root
-- @include defaults
-- @include complete
local function handed(k, script, args, first)
  local tasks, named_fields, i = {}, {}, first
  while i <= #args do
    local n = tonumber(args[i])
    if not n or n < 1 or n > 100 or n ~= math.floor(n) then
      error(script .. ": " .. args[i] .. " is no count of fields", 0)
    end
    local task, last = {queue = "default"}, i + 2 * n
    for j = i + 1, last, 2 do
      task[args[j]] = args[j + 1]
      named_fields[args[j]] = true
      k.none = k.none or args[j + 1] == "none"
    end
    tasks[#tasks + 1] = task
    i = last + 1
  end

  -- A key of the wrong type must be met before the first write, not after it.
  local kinds, asked = {}, {}
  for _, task in ipairs(tasks) do
    local field = "kind:" .. (task.kind or "")
    if not asked[field] then
      asked[field] = true
      kinds[#kinds + 1] = field
    end
  end
  root(k, kinds)
  complete(k.failed)
  for _, field in ipairs(kinds) do
    for name in pairs(defaults(k, string.sub(field, 6))) do
      named_fields[name] = true
    end
  end
  if k.level == "all" then
    redis.call("XLEN", k.events)
  end
  for _, task in ipairs(tasks) do
    local queue = task.queue
    if not k.tokens[queue] then
      redis.call("ZCARD", k.ready .. queue)
      redis.call("HLEN", k.queue .. queue)
      k.tokens[queue] = redis.call("LLEN", k.wake .. queue)
      k.listed[queue] = redis.call("SISMEMBER", k.queues, queue) == 1
    end
  end
  local function whole(field, command, key)
    if named_fields[field] then
      redis.call(command, key)
    end
  end
  whole("timeout_ms", "ZCARD", k.deadlines)
  whole("deadline_at", "ZCARD", k.deadlines)
  whole("default_timeout_ms", "ZCARD", k.deadlines)
  whole("budget_percent", "ZCARD", k.deadlines)
  whole("delay_ms", "ZCARD", k.delayed)
  whole("available_at", "ZCARD", k.delayed)
  whole("queue_timeout_ms", "ZCARD", k.limits)
  whole("warn_percent", "ZCARD", k.limits)
  whole("idempotency_key", "HLEN", k.idem)
  whole("idempotency_key", "ZCARD", k.forget)

  -- As a rule none of the ids is known, and one look at all of them says so. The same
  -- id twice in a list is found by the second look.
  local ids, twice, perhaps = {}, {}, false
  for n, task in ipairs(tasks) do
    local id = task.id or ""
    ids[n] = k.task .. id
    perhaps = perhaps or twice[id]
    twice[id] = true
  end
  k.perhaps = perhaps or #ids > 0 and redis.call("EXISTS", unpack(ids)) > 0
  return tasks
end
