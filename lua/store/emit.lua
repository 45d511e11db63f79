-- emit records the event of a transition. No other file does, so each transition has one event. The events of a unit
-- of work become one entry of the stream, with one line for each event (store/events.lua):
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
--   more   "name=value name=value": fields of this kind of event; free text is escaped (store/escape.lua)
--
-- The line is made in one expression, since Redis hashes each byte of each intermediate string in Lua.
--
-- @use store/own
local function emit(tx, level, kind, task, more)
  local wanted = tx.root.level
  if wanted == "none" or level == "all" and wanted ~= "all" then
    return
  end
  if task.node then
    more = (more and more .. " " or "") .. string.gsub(task.node, "^(%S+) (%S+) (%S+)$", "definition=%1 version=%2 node=%3")
  end
  local events = own(tx, "events")
  events[#events + 1] = kind .. " " .. task.id .. " " .. (task.kind or "-") .. " " .. (task.queue or "-") .. " " ..
    (task.created_at or "-") .. " " .. (task.started_at or "-") .. " " .. (task.epoch or "0") .. " " ..
    (task.retries and string.format("%d", task.retries + 1) or "1") .. " " .. (task.worker or "-") .. (more and " " or "") .. (more or "")
end
