-- signal: somebody outside tells an agent something, once for each name. The signal is a
-- promise, a child of the agent; whichever side comes first makes it, so one that comes
-- early is not lost.
--
-- KEYS[1]  root of the partition
-- ARGV[1]  call: kept over repeats of this call
-- ARGV[2]  agent
-- ARGV[3]  name of the signal
-- ARGV[4]  what it says, opaque
--
-- Returns  {"OK"}                       it is told; also when this call had done it before
--          {"ALREADY", status, note}    there was one of that name, or nobody waits for it any more
--          {"OWNER", id, status}        the agent has ended, or is not there (status "")
--          {"INVALID", field, why}      nothing was stored
--          {"BROKEN", why}              a record in its way cannot be worked with
-- Ends     COMPLETED, and what is late
-- Flags    allow-oom        somebody waits for it
--
-- @include keys
-- @include now
-- @include record
-- @include overdue
-- @include live
-- @include handed
-- @include consider
-- @include admit
-- @include finish
-- @include refuse
-- @include flush
-- @include complete

local k, at = keys(KEYS[1]), now()
local call, agent, name, note = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local id = agent .. ".s-" .. name

if not note then
  error("signal: it has a call, an agent, a name and what it says", 0)
end

local function tell()
  if #name > 128 or not string.find(name, "^%w[%w_-]*$") then
    return {"INVALID", "name", "must be 1 to 128 of A-Z a-z 0-9 _ - and begin with a letter or digit"}
  end
  local queue = redis.call("HGET", k.task .. agent, "queue")
  local asked = handed(k, "signal", {4, "id", id, "kind", "signal", "role", "promise", "queue", queue or "default"}, 1)[1]
  local answer, plan = consider(k, asked, at)
  if answer and answer[1] ~= "OK" then
    return answer
  elseif plan then
    admit(k, asked, plan, at)
  end
  local task = overdue(k, id, at)
  if live(task) then
    finish(k, task, {status = "COMPLETED", result = note, fields = {"call", call}}, at)
    return {"OK"}
  elseif task.call == call then
    return {"OK"}
  elseif task.status ~= "COMPLETED" then
    local owner = overdue(k, agent, at)
    if not live(owner) then
      return {"OWNER", agent, owner.status or ""}
    end
  end
  refuse(k, task, at, "signal", "", "")
  return {"ALREADY", task.status, task.result or task.error or ""}
end

local ok, answer = pcall(tell) -- what is wrong may be the agent's, so nothing is put aside
complete(flush(k, at))
return ok and answer or {"BROKEN", type(answer) == "table" and answer.err or tostring(answer)}
