-- read_events: the events behind a place in the stream, and what the stream says of
-- itself at that instant, from which the reader sees whether any were lost before them.
--
-- KEYS[1]  root of the partition
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
-- @include keys
-- @include now

local k, at = keys(KEYS[1]), now()
local after, n = ARGV[1], tonumber(ARGV[2])
if not n or n > 10000 then
  error("read_events: " .. tostring(ARGV[2]) .. " is no count of events, 10000 at the most", 0)
end
if redis.call("EXISTS", k.events) == 0 then
  return {at, 0, 0, "0-0", "0-0"}
end
local about = {}
local words = redis.call("XINFO", "STREAM", k.events)
for i = 1, #words, 2 do
  about[words[i]] = words[i + 1]
end
local oldest = redis.call("XRANGE", k.events, "-", "+", "COUNT", 1)
local answer = {at, about["entries-added"] or -1, about.length, oldest[1] and oldest[1][1] or "0-0", about["last-generated-id"]}
if n > 0 then
  for _, entry in ipairs(redis.call("XRANGE", k.events, "(" .. after, "+", "COUNT", n)) do
    answer[#answer + 1] = entry
  end
end
return answer
