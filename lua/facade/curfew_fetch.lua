-- curfew_fetch: claims tasks for a worker with free slots, and renews its lease.
--
-- KEYS[1]  root of a partition
-- ARGV[1]  worker: a name that no other process has or had
-- ARGV[2…] slots   the most tasks to claim, up to 500; absent: 1. A reply has at most 4 MiB, or one larger task
--          queues  emails,default or emails=3,default=1: names, in order; a number is how many this one gives before the
--                  next one; absent: default
--          lease   the time until the worker counts as dead, unless it calls again; absent: 30s. A worker that cannot
--                  call curfew_heartbeat while it works takes a lease that is longer than its longest task
--          seq     a number that grows with each fetch. The same number repeats a fetch whose reply was lost. Absent: one
--                  more than the last, so a repeat gets other tasks
--
-- Returns  {"now", ms, "seq", n, "claims", {{"id", id, "epoch", n, …}, …}, "wake", {key, …}, "wait_ms", n, "stop", n}
--            claims   id, epoch, kind, queue, attempt, created_at, payload of each; if it has them: deadline_at (of the
--                     task), attempt_ends_at (of this attempt), max_retries and headers
--            wake     keys for BLPOP when there are no claims
--            wait_ms  fetch again after this time even if no key has a value; 0: at once
--            stop     1: the worker is asked to stop, and gets no tasks
-- Ends     FAILED: late tasks in line
-- Flags    allow-oom        a full Redis must still drain
--
-- @use call/fetch
-- @use check/values: names, whole
-- @use named/options: clip, count_of, options, reject, root_of, span_of, worker_of
-- @use named/reply: plain, reply
-- @use store/keys
-- @use store/record: parse
local parameters = {slots = true, queues = true, lease = true, lease_ms = true, seq = true}

-- queues_of reads the queues that a worker serves. A quota is how many tasks of a queue are claimed before any of the next queue; without
-- one it is the number of slots.
--
-- Returns queue, quota, …
local function queues_of(text, slots)
  local words = {}
  if #text > 65536 then
    reject("INVALID", "queues has " .. #text .. " bytes, and may have 65536")
  end
  for word in string.gmatch(text, "[^%s,]+") do
    local queue, quota = string.match(word, "^([^=]*)=?(.*)$")
    local _, fault = names.queue(queue)
    if fault then
      reject("INVALID", 'the queue "' .. clip(queue) .. '" ' .. fault)
    elseif quota ~= "" and not whole(quota) then
      reject("INVALID", 'the quota "' .. clip(quota) .. '" of ' .. queue .. " must be a whole number")
    end
    words[#words + 1] = queue
    words[#words + 1] = quota ~= "" and quota or slots
  end
  if #words > 2000 then
    reject("INVALID", "queues has " .. #words / 2 .. " names, and may have 1000")
  elseif not words[1] then
    reject("INVALID", "queues has no name: give names with commas or spaces between them")
  end
  return words
end

local function add(words, name, value)
  if value and value ~= "-" and value ~= "" then
    words[#words + 1] = name
    words[#words + 1] = value
  end
end

-- claim_of names the five values of a claim (task/claim.lua).
local function claim_of(id, epoch, state, spec, payload)
  local task = parse(id, spec, nil)
  local attempt_end, retries = string.match(state, "^(%S+) (%S+)")
  local words = {"id", id, "epoch", epoch, "kind", task.kind, "queue", task.queue, "attempt", string.format("%d", (tonumber(retries) or 0) + 1),
    "created_at", task.created_at, "payload", task.payload_bytes and payload or string.sub(spec, task.payload_from)}
  add(words, "deadline_at", task["until"] or task.deadline_at)
  add(words, "attempt_ends_at", attempt_end)
  add(words, "max_retries", task.max_retries)
  add(words, "headers", task.headers)
  return words
end

local function fetch_named(roots, argv)
  local root, worker = root_of(roots), worker_of(argv, "worker")
  local args = options.read(argv, 2, parameters)
  local slots = count_of(args, "slots", "1", 0, 500)
  local queues = queues_of(args.queues or "default", slots)
  local lease = span_of(args, "lease", "30000", 1, 86400000)
  local key = keys.of(root)
  local seq = count_of(args, "seq", string.format("%d", (redis.call("HGET", key.worker .. worker, "seq") or 0) + 1), 0)
  local instant, fetched = unpack(plain(fetch(roots, {worker, seq, slots, lease, "0", unpack(queues)})))
  local claims, wake, wait_ms = {}, {}, fetched[1] -- -1: the worker must stop; less: queue/queue.lua
  for i = 2, #fetched, 5 do
    claims[#claims + 1] = claim_of(unpack(fetched, i, i + 4))
  end
  for i = 1, #queues, 2 do
    wake[#wake + 1] = key.wake .. queues[i]
  end
  return {"now", string.format("%d", instant), "seq", seq, "claims", claims, "wake", wake,
    "wait_ms", string.format("%d", wait_ms < -1 and 1000 or math.max(wait_ms, 0)), "stop", wait_ms == -1 and "1" or "0"}
end

local function curfew_fetch(roots, argv)
  return reply(fetch_named, roots, argv)
end
