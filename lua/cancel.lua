-- cancel: somebody wants tasks to end.
--
-- KEYS[1]  root of the partition
-- ARGV[1]  call: kept over repeats of this call
-- ARGV[2]  reason, opaque; "" for none
-- ARGV[3…] ids
--
-- Returns  for each id one of
--   {"CANCELLED"}                it was live, and is cancelled; also when this call had done it before
--   {"ALREADY", status, note}    it had ended: its result if COMPLETED, its error if not
--   {"MISSING"}                  no such task
--   {"BROKEN", why}              its record cannot be worked with
-- Ends     CANCELLED
-- Flags    allow-oom        a full Redis must still drain
--
-- @include keys
-- @include now
-- @include overdue
-- @include live
-- @include finish
-- @include guard
-- @include flush
-- @include complete

local k, at = keys(KEYS[1]), now()
local call, reason = ARGV[1], ARGV[2]

local function end_it(id)
  local task = overdue(k, id, at)
  if not task.status then
    return {"MISSING"}
  end
  if live(task) then
    finish(k, task, {status = "CANCELLED", reason = "cancelled", error = reason ~= "" and reason or "Task cancelled",
      fields = {"call", call}}, at)
    return {"CANCELLED"}
  end
  if task.status == "CANCELLED" and task.call == call then
    return {"CANCELLED"}
  end
  return {"ALREADY", task.status, task.result or task.error or ""}
end

local answers = {}
for i = 3, #ARGV do
  local answer, why = guard(k, ARGV[i], at, end_it, ARGV[i])
  answers[#answers + 1] = answer or {"BROKEN", why}
end
complete(flush(k, at))
return answers
