-- curfew_sweep: ends, starts and removes tasks that are due. Fleets without a reaper call it for each partition.
--
-- KEYS[1]  root of a partition
-- ARGV[1]  reaper: a name that no other reaper has
-- ARGV[2…] batch     how many tasks of a kind at the most, up to 250; absent: 100
--          fallback  the longest time that this reaper waits between two calls; absent: 500ms
--
-- Returns  {"now", ms, "wait_ms", n, "turn", n, "timed_out", n, "started", n, …}
--            wait_ms  until the next call; 0: at once, more is due
--            turn     1: this reaper keeps the time of the partition; 0: another reaper does, and this one is its spare
-- Ends     FAILED, CANCELLED
-- Flags    allow-oom        a full Redis must still drain
--
-- @use call/sweep
-- @use named/options: count_of, options, root_of, span_of, worker_of
-- @use named/reply: plain, reply
local parameters = {batch = true, fallback = true, fallback_ms = true}

local function sweep_named(keys, argv)
  root_of(keys)
  local reaper = worker_of(argv, "reaper")
  local args = options.read(argv, 2, parameters)
  local answer = plain(sweep(keys, {reaper, count_of(args, "batch", "100", 1, 250), span_of(args, "fallback", "500", 1, 3600000)}))
  local words = {"now", string.format("%d", answer[1]), "wait_ms", string.format("%d", answer[2]), "turn", string.format("%d", answer[3])}
  for _, word in ipairs(answer[4]) do
    words[#words + 1] = tostring(word)
  end
  return words
end

local function curfew_sweep(keys, argv)
  return reply(sweep_named, keys, argv)
end
