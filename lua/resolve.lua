-- resolve: somebody outside settles promises by their ids.
--
-- KEYS[1]  root of the partition
-- ARGV[1]  call: kept over repeats of this call
-- ARGV[2]  verb: complete or fail
-- ARGV[3…] id, note, …: the result of complete, the error of fail, opaque
--
-- Returns  for each id one of
--   {"OK", status}               it is settled; also when this call had done it before
--   {"ALREADY", status, note}    it had ended: its result if COMPLETED, its error if not
--   {"MISSING"}                  no such task
--   {"INVALID", field, why}      it is no promise
--   {"BROKEN", why}              its record cannot be worked with
-- Ends     COMPLETED, FAILED
-- Flags    allow-oom        a full Redis must still drain
--
-- @include keys
-- @include now
-- @include overdue
-- @include live
-- @include finish
-- @include refuse
-- @include guard
-- @include flush
-- @include complete

local k, at = keys(KEYS[1]), now()
local call, verb = ARGV[1], ARGV[2]
if verb ~= "complete" and verb ~= "fail" then
  error("resolve: " .. tostring(verb) .. " is no verb: complete or fail", 0)
end

if #ARGV % 2 == 1 then
  error("resolve: " .. ARGV[#ARGV] .. " has no note; give an empty one", 0)
end

local function settle(id, note)
  local task = overdue(k, id, at)
  if not task.status then
    return {"MISSING"}
  elseif not task.role then
    return {"INVALID", "id", "is of a task that workers run, not of a promise: its worker settles it, or cancel it"}
  elseif not live(task) then
    if task.call == call then
      return {"OK", task.status}
    end
    refuse(k, task, at, verb == "complete" and "resolve" or "reject", "", "")
    return {"ALREADY", task.status, task.result or task.error or ""}
  end
  if verb == "complete" then
    finish(k, task, {status = "COMPLETED", result = note, fields = {"call", call}}, at)
  else
    finish(k, task, {status = "FAILED", reason = "rejected", error = note, fields = {"call", call}}, at)
  end
  return {"OK", task.status}
end

local answers = {}
for i = 3, #ARGV, 2 do
  local answer, why = guard(k, ARGV[i], at, settle, ARGV[i], ARGV[i + 1])
  answers[#answers + 1] = answer or {"BROKEN", why}
end
complete(flush(k, at))
return answers
