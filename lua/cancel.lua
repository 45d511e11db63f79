-- cancel: somebody wants tasks to end. Of several those of a higher priority end first.
--
-- KEYS[1]  root of the partition
-- ARGV[1]  call: kept over repeats of this call
-- ARGV[2]  reason, opaque; "" for none
-- ARGV[3]  owner of all of them, or "": whoever asks may cancel any
-- ARGV[4…] ids
--
-- Returns  for each id one of
--   {"CANCELLED"}                it was live, and is cancelled; also when this call had done it before
--   {"CANCELLING", instant}      it will be, at that instant or as soon as its handler stops
--   {"ALREADY", status, note}    it had ended: its result if COMPLETED, its error if not
--   {"MISSING"}                  no such task
--   {"BROKEN", why}              its record cannot be worked with
--   {"FOREIGN", id}              that one is no child of the owner, and nothing was done
-- Ends     CANCELLED
-- Flags    allow-oom        a full Redis must still drain
--
-- @include keys
-- @include now
-- @include overdue
-- @include live
-- @include owner
-- @include cancelled
-- @include revoke
-- @include refuse
-- @include guard
-- @include flush
-- @include complete

local k, at = keys(KEYS[1]), now()
local call, reason, parent = ARGV[1], ARGV[2], ARGV[3]

local function end_it(id)
  local task = overdue(k, id, at)
  if not task.status then
    return {"MISSING"}
  end
  if live(task) then
    revoke(k, task, cancelled(reason, {"call", call}), reason, call, at)
    return live(task) and {"CANCELLING", task.grace_at} or {"CANCELLED"}
  end
  -- Its end after a grace may be another call's, that of the report of its handler.
  if task.status == "CANCELLED" and (task.call == call or task.cancelled_by == call) then
    return {"CANCELLED"}
  end
  refuse(k, task, at, "cancel", "", "")
  return {"ALREADY", task.status, task.result or task.error or ""}
end

for i = 4, #ARGV do
  if parent ~= "" and owner(ARGV[i]) ~= parent then
    local answers = {}
    for n = 1, #ARGV - 3 do
      answers[n] = {"FOREIGN", ARGV[i]}
    end
    return answers
  end
end

-- In order of their priority, 3 first, and then of the call.
local order = {}
for i = 4, #ARGV do
  local priority = #ARGV > 4 and redis.pcall("HGET", k.task .. ARGV[i], "priority") or 0
  order[i - 3] = {place = i - 3, priority = type(priority) == "string" and tonumber(priority) or 0}
end
table.sort(order, function(a, b)
  return a.priority > b.priority or a.priority == b.priority and a.place < b.place
end)
local answers = {}
for _, o in ipairs(order) do
  local id = ARGV[o.place + 3]
  local answer, why = guard(k, id, at, end_it, id)
  answers[o.place] = answer or {"BROKEN", why}
end
complete(flush(k, at))
return answers
