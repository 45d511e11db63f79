-- The events of a unit of work.
--
-- @use store/try

local function code(byte)
  return string.format("%%%02X", string.byte(byte))
end

-- escape writes a text as one word of a line: a space, a % and each control character become % and two
-- hexadecimal digits.
local function escape(text)
  if string.find(text, "[%c %%]") then
    text = string.gsub(text, "[%c %%]", code)
  end
  return text
end

-- events writes the events of a unit of work as one entry of the stream, or as several of about 64 KiB. An entry has
-- the number of its first event, so that a reader can see how many it has missed, and the instant of all its events:
--
--   first 4711 at 1800000001500 events <a line for each>
--
-- The root counts events and their bytes. At each MiB it stores the id of the entry that begins there (a mark). The
-- marks say where to trim the stream: entries differ in size, so a bound on their number would not bound its memory.
local events = {}

-- most is about how many bytes an entry has. mark is how many bytes lie between two marks. overhead is what an entry
-- needs beside its text.
local most, mark, overhead = 65536, 1048576, 64

-- bound returns the id of the oldest entry to keep, false for no change, and the remaining marks.
local function bound(tx)
  local known = redis.call("HMGET", tx.key.root, "event_marks", "event_mib")
  local marks, keep = {}, tonumber(known[2]) or 64
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
  local size, first = #text + overhead, string.format("%d", root.event_count + 1)
  if root.event_bytes % mark + size < mark then
    id = try(tx, "XADD", tx.key.events, "*", "first", first, "at", tx.now, "events", text)
  else
    local oldest, marks = bound(tx)
    id = try(tx, "XADD", tx.key.events, "MINID", "=", oldest or "0-0", "*", "first", first, "at", tx.now, "events", text)
    marks[#marks + 1] = id or nil
    root.event_marks = table.concat(marks, " ")
  end
  if id then
    root.event_count, root.event_bytes = root.event_count + n, root.event_bytes + size
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
  if tx.events then
    local root, n = tx.root, #fields
    fields[n + 1], fields[n + 2] = "event_count", string.format("%d", root.event_count)
    fields[n + 3], fields[n + 4] = "event_bytes", string.format("%d", root.event_bytes)
    if root.event_marks then
      fields[n + 5], fields[n + 6] = "event_marks", root.event_marks
    end
  end
end

-- emit records the event of a transition. No other file does, so each transition has one event. The events of a unit
-- of work become one entry of the stream, with one line for each event:
--
--   kind task_id task_kind queue created_at started_at epoch attempt worker name=value …
--
-- Every event of a node of a flow's run ends with the words definition, version and node.
--
-- "-" means an absent word. In a value, a space, a % and each control character are written as % and two
-- hexadecimal digits.
--
--   level  "terminal" for the end of a task, "all" for everything else. The namespace sets which events are
--          recorded: all, terminal (default) or none
--   more   "name=value name=value": fields of this kind of event; free text is escaped (escape)
--
-- The line is made in one expression, since Redis hashes each byte of each intermediate string in Lua.
local function emit(tx, level, kind, task, more)
  local wanted = tx.root.level
  if wanted == "none" or level == "all" and wanted ~= "all" then
    return
  end
  if task.node then
    more = (more and more .. " " or "") .. string.gsub(task.node, "^(%S+) (%S+) (%S+)$", "definition=%1 version=%2 node=%3")
  end
  local lines = tx.events
  if not lines then
    lines = {}
    tx.events = lines
  end
  lines[#lines + 1] = kind .. " " .. task.id .. " " .. (task.kind or "-") .. " " .. (task.queue or "-") .. " " ..
    (task.created_at or "-") .. " " .. (task.started_at or "-") .. " " .. (task.epoch or "0") .. " " ..
    (task.retries and string.format("%d", task.retries + 1) or "1") .. " " .. (task.worker or "-") .. (more and " " or "") .. (more or "")
end
