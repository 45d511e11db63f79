-- read_ask reads a worker's request for tasks from argument i on: seq, n, lease in ms, then queue and quota of each
-- queue. It raises if an argument is invalid.
--
--   seq  grows with each request of the worker; an equal seq repeats a request whose reply was lost
--
-- Returns {worker, seq, n, lease, queues, quotas}
--
-- @use check/names
-- @use check/whole
local function read_ask(argv, i, worker)
  local ask = {worker = worker, seq = whole(argv[i]), n = whole(argv[i + 1]), lease = whole(argv[i + 2], 1, 4503599627370496),
    queues = {}, quotas = {}}
  if not ask.seq or not ask.n or not ask.lease then
    error("argument " .. i .. " and the next two must be whole numbers: seq, how many tasks, and ms of lease from 1 on", 0)
  elseif (#argv - i - 2) % 2 ~= 0 then
    error("argument " .. #argv .. " must be followed by a quota: give queue and quota of each queue", 0)
  end
  for j = i + 3, #argv, 2 do
    local _, why = names.queue(argv[j])
    if why then
      error("argument " .. j .. ": a queue " .. why, 0)
    end
    local n = #ask.queues + 1
    ask.queues[n], ask.quotas[n] = argv[j], whole(argv[j + 1])
    if not ask.quotas[n] then
      error("argument " .. (j + 1) .. " must be the quota of " .. argv[j] .. ", a whole number", 0)
    end
  end
  return ask
end
