-- remember: an agent writes down what it must not do, or draw, a second time, and where
-- its replay is to begin.
--
-- KEYS[1]  root of the partition
-- ARGV[1]  agent
-- ARGV[2]  epoch, as fetch gave it
-- ARGV[3]  worker
-- ARGV[4…] what to note: include/noted.lua
--
-- Returns  {"OK"}                     it is written; also when it was before
--          {"LOST", status}           the agent is no longer this claim's
--          {"CANCELLING", instant}    it is to stop, and begins nothing any more
--          {"MISSING"}                no such task
--          {"INVALID", field, why}    nothing was written
-- Ends     what is late
-- Flags    allow-oom        what has happened must be remembered
--
-- @include keys
-- @include now
-- @include holder
-- @include noted
-- @include note
-- @include flush
-- @include complete

local k, at = keys(KEYS[1]), now()
local task, answer = holder(k, ARGV[1], ARGV[2], ARGV[3], "remember", at)
if task then
  local taken, field, why = noted(k, task.id, ARGV, 4)
  if taken then
    note(k, task, taken)
    answer = {"OK"}
  else
    answer = {"INVALID", field, why}
  end
end
complete(flush(k, at))
return answer
