-- drain: a client cancels the tasks in the line of a queue, and those that are held (task/hold.lua), in chunks. Tasks that run, and
-- tasks that start later, are left alone. So is an agent whose attempt times out in this call and is retried later.
--
-- ARGV[1]  call: identifies this call; a repeat has the same, and each chunk a new one
-- ARGV[2]  queue
-- ARGV[3]  the largest number of tasks, up to 500; 0: return only seq and front
-- ARGV[4]  reason, opaque, up to 8192 bytes; "" for none
-- ARGV[5], ARGV[6]  seq and front of an earlier reply, so that tasks which joined the line later stay; absent: as of now
--
-- Returns  {"OK", n, left, found}  of found tasks, n were cancelled (a repeat gets the same), and left are still in line or held
--          {"OK", 0, left, 0, seq, front}  for ARGV[3] 0: seq and front are the newest places in line
-- Ends     CANCELLED; FAILED if the time of the task was up
-- Flags    allow-oom        a full Redis must still drain
--
-- @use check/values: names, whole
-- @use queue/queue: held_sets
-- @use store/index
-- @use store/later
-- @use store/record
-- @use store/tell: answer
-- @use store/try: attempt
-- @use store/tx: begin, read_root
-- @use task/ending: cancelled
-- @use task/finish: finish, load_task
-- @use task/place: mend_place
-- @use unit/unit

-- lines returns the keys of the line of a queue and of its held tasks, which have places in line too.
local function lines(tx, queue)
  local keys = {tx.key.ready .. queue}
  for _, set in ipairs(held_sets(tx)[queue] or {}) do
    if type(attempt("ZCARD", tx.key.held .. set)) == "number" then
      keys[#keys + 1] = tx.key.held .. set
    end
  end
  return keys
end

-- find_in_line adds ids of a line, up to d.most, whose places are not newer than seq and front (queue/queue.lua). of gets the line
-- of each.
local function find_in_line(line, d, ids, of)
  for i = 0, 7 do -- a priority has a band of places for woken agents, and one for other tasks
    local band = math.floor(i / 2) * 1125899906842624 - (i % 2 == 0 and 281474976710656 or 0)
    local first, last = string.format("%d", i % 2 == 0 and band or band - d.front), string.format("%d", band + d.seq)
    for _, id in ipairs(#ids < d.most and redis.call("ZRANGEBYSCORE", line, first, last, "LIMIT", 0, d.most - #ids) or {}) do
      ids[#ids + 1], of[id] = id, line
    end
  end
end

local function drain_some(tx, d)
  local about = tx.key.queue .. d.queue
  local existed = redis.call("SISMEMBER", tx.key.queues, d.queue) == 1
  local last = redis.call("HMGET", about, "drained_by", "drained")
  if last[1] == d.call then
    return {string.match(last[2], "^%d+"), string.match(last[2], " (%d+)$") or d.most}
  end
  local n, ids, of = 0, {}, {}
  for _, line in ipairs(lines(tx, d.queue)) do
    find_in_line(line, d, ids, of)
  end
  record.load(tx, ids)
  for _, id in ipairs(ids) do
    tx.on = id
    local task = load_task(tx, id)
    if task and task.status == "PENDING" and not task.available_at then
      finish(tx, task, cancelled(d.reason, d.call))
      n = n + 1
    else
      index.remove(tx, of[id], id) -- the record decides: it is not ready, or its retry has a delay
      if task then
        mend_place(tx, task)
      end
    end
  end
  if existed then
    later.after(tx, "HSET", about, "drained_by", d.call, "drained", n .. " " .. #ids)
  end
  return {n, #ids}
end

local function drain(keys, argv)
  local d = {call = names.word("call", argv[1]), queue = argv[2] or "", most = whole(argv[3], 0, 500), reason = argv[4],
    seq = whole(argv[5] or "0", 0, 281474976710656), front = whole(string.match(argv[6] or "0", "^%-?(%d+)$"), 0, 140737488355328)}
  local _, fault = names.queue(d.queue)
  if fault then
    error("argument 2: a queue " .. fault, 0)
  elseif not d.most then
    error("argument 3 must be the number of tasks, 0 to 500", 0)
  elseif not d.seq or not d.front or not argv[5] ~= not argv[6] then
    error("arguments 5 and 6 must be seq and front of an earlier reply", 0)
  elseif #(d.reason or "") > 8192 then -- each task keeps it
    error("argument 4 must be a reason of up to 8192 bytes", 0)
  end
  local tx = read_root(begin(keys[1]))
  if not argv[5] then
    d.seq, d.front = tx.root.seq, -tx.root.front
  end
  local done = d.most > 0 and unit(tx, drain_some, d) or {0, 0, string.format("%d", d.seq), string.format("%d", -d.front)}
  local left = 0
  for _, line in ipairs(lines(tx, d.queue)) do
    left = left + redis.call("ZCARD", line)
  end
  return answer(tx, {"OK", done[1], left, done[2], done[3], done[4]})
end
