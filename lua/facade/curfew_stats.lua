-- curfew_stats: returns the numbers of tasks of a partition, by clock and queue. It changes nothing.
--
-- KEYS[1]  root of a partition
-- ARGV     page  `next` of the reply before; absent: the first page
--
-- Returns  {"now", ms, "deadlines", n, "delayed", n, …, "next", page, "queues", {{"queue", name, "ready", n, "dead", n, …}, …}}:
--          about 500 queues; next is 0 after the last
-- Flags    no-writes
--
-- @use call/read_queues
-- @use named/options: count_of, options, root_of
-- @use named/reply
local function stats(keys, argv)
  root_of(keys)
  local page = count_of(options.read(argv, 1, {page = true}), "page", "0", 0)
  local answer = read_queues(keys, {page})
  local words, queues = {"now", string.format("%d", answer[1])}, {}
  for _, word in ipairs(answer[2]) do
    words[#words + 1] = tostring(word)
  end
  for n = 4, #answer do -- each begins with the name of a queue
    local row = {"queue"}
    for i, word in ipairs(answer[n]) do
      row[i + 1] = tostring(word)
    end
    queues[n - 3] = row
  end
  for _, word in ipairs({"next", answer[3], "queues", queues}) do
    words[#words + 1] = word
  end
  return words
end

local function curfew_stats(keys, argv)
  return reply(stats, keys, argv)
end
