-- delete: a client removes the records of ended tasks before their retention is over.
--
-- ARGV     ids, up to 500
--
-- Returns  for each id one of
--   {"DELETED"}           the record is removed. A repeat of the call gets MISSING
--   {"LATER", instant}    the record is removed at that instant. It stays for a minute after the end, since a caller
--                         can repeat a call about the task for 30 s and must find the record
--   {"LIVE", status}      the task has not ended
--   {"OWNED", id}         its owner id has not ended and may still read it
--   {"DRAINING", id}      children of id, the task itself or its owner, have not ended
--   {"HOOKED", id}        its hook id has not ended
--   {"MISSING"}           there is no such task
--   {"BROKEN", why}       its record cannot be read
--          After 16 MiB of payloads and results the reply ends: send the other ids again
-- Ends     tasks among them that must end: timers COMPLETED, FAILED if their time was up, else CANCELLED
-- Flags    allow-oom        it frees memory
--
-- @use store/index
-- @use store/messages: alarm
-- @use store/record
-- @use store/tell: answer
-- @use store/tx: begin, read_root
-- @use task/finish: load_task
-- @use task/removal: forget_sooner, keeps_record, remove_record
-- @use unit/unit

-- written returns the instant at which the end of a task was written. completed_at can be earlier than that, and is even
-- before created_at if the deadline was.
local function written(tx, task)
  return task.changed and tx.at or math.max(tonumber(task.created_at), tonumber(task.completed_at), tonumber(task.detected_at) or 0)
end

local function remove(tx, task)
  local end_written = written(tx, task)
  local removal = math.max(end_written + 60000, tx.at)
  forget_sooner(tx, task, end_written, removal)
  if removal == tx.at then
    return {"DELETED"}, remove_record(tx, task)
  end
  index.add(tx, tx.key.retained, string.format("%d", removal), task.id)
  alarm.note(tx, removal)
  return {"LATER", removal}, 0
end

local function delete_all(tx, ids)
  local answers, bytes, gone = {}, 0, {}
  record.load(tx, ids)
  for n, id in ipairs(ids) do
    if bytes > 16777216 then
      break
    end
    tx.on = id
    local task, fault = load_task(tx, id)
    if not task then
      answers[n] = {"BROKEN", fault}
    elseif not task.status or gone[id] then
      answers[n] = {"MISSING"}
    else
      local verdict, size = keeps_record(tx, task), 0
      if not verdict then
        verdict, size = remove(tx, task)
      end
      gone[id] = verdict[1] == "DELETED"
      answers[n], bytes = verdict, bytes + size
    end
  end
  return answers
end

local function delete(keys, argv)
  if #argv > 500 then
    error("a call takes up to 500 ids", 0)
  end
  local tx = read_root(begin(keys[1]))
  return answer(tx, unit(tx, delete_all, argv))
end
