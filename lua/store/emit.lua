-- emit tells of a transition. No other file does, so a transition has one event. All that a unit of work
-- tells becomes one entry of the stream, a line each (store/events.lua).
--
--   kind task_id task_kind queue created_at started_at epoch attempt worker name=value …
--
-- "-" stands for a word that is absent. In a value a space, a % and what cannot be printed are written as % and
-- two hexadecimal digits.
--
--   level  "terminal" for the end of a task, "all" for everything else. The namespace says which it
--          wants: all, terminal (default) or none
--   more   "name=value name=value": what only this kind of event says; free text is escaped (store/escape.lua)
--
-- A text is made in one expression, since Redis looks at each byte of each text that Lua makes on the way.
--
-- @use store/own
local function emit(tx, level, kind, task, more)
  local wanted = tx.root.level
  if wanted == "none" or level == "all" and wanted ~= "all" then
    return
  end
  local events = own(tx, "events")
  events[#events + 1] = kind .. " " .. task.id .. " " .. (task.kind or "-") .. " " .. (task.queue or "-") .. " " ..
    (task.created_at or "-") .. " " .. (task.started_at or "-") .. " " .. (task.epoch or "0") .. " " ..
    (task.retries and string.format("%d", task.retries + 1) or "1") .. " " .. (task.worker or "-") .. (more and " " or "") .. (more or "")
end
