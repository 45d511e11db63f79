-- read_events: returns the events behind an id of the stream, and the bounds of the stream at that instant. A
-- reader compares them to find whether it missed events.
--
-- ARGV[1]  id of an entry: returns the entries behind it; 0-0: from the oldest that is kept
-- ARGV[2]  how many events at the most, up to 10000; 0: no events, only the bounds
--
-- Entries are returned whole, and at least one. The reply ends after the entry that reaches this number or a MiB of text.
--
-- Returns  {now, count, before, first, last, more, {id, {name, value, …}}, …}
--            count   how many events were ever written
--            before  how many were written before the oldest that is kept; 0 if 100 entries of another writer come first
--            first   id of the oldest entry that is kept, 0-0 if the stream is empty
--            last    the newest id ever given, 0-0 if there is no stream
--            more    1: there are entries behind the last of these
-- Flags    no-writes
--
-- @use check/values: whole
-- @use store/tx: begin, read_root

-- text returns the events of an entry, and the number of the first of them. For an entry of another writer: "" and nil.
local function text(entry)
  local values = entry[2]
  if values[1] == "first" and values[5] == "events" then
    return values[6], tonumber(values[2])
  end
  return "", nil
end

-- oldest returns the number of events that were written before the oldest in the stream. If the stream begins with 100 entries
-- of another writer, it returns 0: store/events.lua leaves an event at the beginning, so it has not trimmed this stream.
local function oldest(tx)
  local from = "-"
  for _ = 1, 10 do
    local entries = redis.call("XRANGE", tx.key.events, from, "+", "COUNT", 10)
    for _, entry in ipairs(entries) do
      local _, first = text(entry)
      if first then
        return first - 1
      end
      from = "(" .. entry[1]
    end
    if #entries < 10 then
      return tx.root.event_count
    end
  end
  return 0
end

-- read adds the entries behind an id to answer. It returns 1 if there are more, else 0.
local function read(tx, answer, after, n)
  local bytes = 0
  while n > 0 and bytes < 1048576 do
    local entries = redis.call("XRANGE", tx.key.events, "(" .. after, "+", "COUNT", 10)
    for _, entry in ipairs(entries) do
      answer[#answer + 1], after = entry, entry[1]
      n, bytes = n - math.max(select(2, string.gsub(text(entry), "\n", "")), 1), bytes + #table.concat(entry[2])
      if n <= 0 or bytes >= 1048576 then
        break
      end
    end
    if #entries == 0 then
      return 0
    end
  end
  return #redis.call("XRANGE", tx.key.events, "(" .. after, "+", "COUNT", 1)
end

local function read_events(keys, argv)
  local after, n = argv[1], whole(argv[2], 0, 10000)
  if not n then
    error("argument 2 must be the number of events, at most 10000", 0)
  elseif not after or #after > 41 or not string.find(after, "^%d+%-?%d*$") or string.find(after, "%-$") then
    error("argument 1 must be the id of an entry, 0-0 for the oldest", 0)
  end
  local tx = read_root(begin(keys[1]))
  local key, first, last = tx.key.events, nil, "0-0"
  if redis.call("EXISTS", key) == 1 then
    first = redis.call("XRANGE", key, "-", "+", "COUNT", 1)[1]
    local words = redis.call("XINFO", "STREAM", key)
    for i = 1, #words, 2 do
      last = words[i] == "last-generated-id" and words[i + 1] or last
    end
  end
  local answer = {tx.at, tx.root.event_count, oldest(tx), first and first[1] or "0-0", last, 0}
  answer[6] = read(tx, answer, after, n)
  return answer
end
