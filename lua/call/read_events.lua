-- read_events: the events behind a place in the stream, and what the stream says of itself at that instant,
-- from which the reader sees whether any were lost before them.
--
-- ARGV[1]  id of the last event read; 0-0: from the oldest that is kept
-- ARGV[2]  how many at most, 10000 at the most; 0: none, only where the stream is
--
-- Returns  {now, added, length, first, last, {id, {name, value, …}}, …}
--            added   how many entries there ever were; -1 where the server does not count them
--            length  how many are kept
--            first   id of the oldest kept, 0-0 if there is none
--            last    the newest id ever given, 0-0 if there is no stream
-- Flags    no-writes
--
-- @use check/whole
-- @use store/begin
local function read_events(keys, argv)
  local tx = begin(keys[1])
  local after, n, events = argv[1], whole(argv[2], 0, 10000), tx.key.events
  if not n then
    error("argument 2 must be how many events, at most 10000", 0)
  elseif not after or #after > 41 or not string.find(after, "^%d+%-?%d*$") or string.find(after, "%-$") then
    error("argument 1 must be the id of an event, 0-0 for the oldest", 0)
  elseif redis.call("EXISTS", events) == 0 then
    return {tx.at, 0, 0, "0-0", "0-0"}
  end
  local about = {}
  local words = redis.call("XINFO", "STREAM", events)
  for i = 1, #words, 2 do
    about[words[i]] = words[i + 1]
  end
  local oldest = redis.call("XRANGE", events, "-", "+", "COUNT", 1)
  local answer = {tx.at, about["entries-added"] or -1, about.length, oldest[1] and oldest[1][1] or "0-0", about["last-generated-id"]}
  if n > 0 then
    for _, entry in ipairs(redis.call("XRANGE", events, "(" .. after, "+", "COUNT", n)) do
      answer[#answer + 1] = entry
    end
  end
  return answer
end
