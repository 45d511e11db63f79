-- events writes the events of a unit of work as one entry of the stream, or as several of about 64 KiB. An entry has
-- the number of its first event, so that a reader can see how many it has missed, and the instant of all its events:
--
--   first 4711 at 1800000001500 events <a line for each>
--
-- The root counts events and their bytes. At each MiB it stores the id of the entry that begins there (a mark). The
-- marks say where to trim the stream: entries differ in size, so a bound on their number would not bound its memory.
--
-- @use store/try
local events = {}

-- most is about how many bytes an entry has. mark is how many bytes lie between two marks. overhead is what an entry
-- needs beside its text.
local most, mark, overhead = 65536, 1048576, 64

-- bound returns the id of the oldest entry to keep, false for no change, and the remaining marks.
local function bound(tx)
  local known = redis.call("HMGET", tx.key.root, "event_marks", "event_mib")
  local marks, keep = {}, tonumber(known[2] or nil) or 64
  for id in string.gmatch(known[1] or "", "%S+") do
    marks[#marks + 1] = id
  end
  local oldest = false
  while #marks > 0 and #marks >= keep do
    oldest = table.remove(marks, 1)
  end
  return oldest, marks
end

-- add writes one entry. Events of an entry that cannot be written are not counted.
local function add(tx, text, n)
  local root, id = tx.root, nil
  local bytes = root.event_bytes + #text + overhead
  local entry = {"first", string.format("%d", root.event_count + 1), "at", tx.now, "events", text}
  if math.floor(bytes / mark) == math.floor(root.event_bytes / mark) then
    id = try(tx, "XADD", tx.key.events, "*", unpack(entry))
  else
    local oldest, marks = bound(tx)
    id = try(tx, "XADD", tx.key.events, "MINID", "=", oldest or "0-0", "*", unpack(entry))
    marks[#marks + 1] = id or nil
    root.event_marks = table.concat(marks, " ")
  end
  if id then
    root.event_count, root.event_bytes = root.event_count + n, bytes
  end
end

function events.write(tx)
  local lines, from, bytes = tx.events, 1, 0
  for i, line in ipairs(lines) do
    bytes = bytes + #line + 1
    if bytes >= most or i == #lines then
      add(tx, table.concat(lines, "\n", from, i) .. "\n", i - from + 1)
      from, bytes = i + 1, 0
    end
  end
end

-- note adds the counts of events to the fields that commit writes to the root.
function events.note(tx, fields)
  if tx.events[1] then
    local root, n = tx.root, #fields
    fields[n + 1], fields[n + 2] = "event_count", string.format("%d", root.event_count)
    fields[n + 3], fields[n + 4] = "event_bytes", string.format("%d", root.event_bytes)
    if root.event_marks then
      fields[n + 5], fields[n + 6] = "event_marks", root.event_marks
    end
  end
end
