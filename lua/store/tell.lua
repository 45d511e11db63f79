-- What a call tells its caller beside its result.
--
-- @use store/messages

-- tell collects what a call has to report to its caller, for the log and for traces: tasks that timed out, and agents
-- that were woken, each as a text of seven words with a space between them. A report of a task is in the reply of one
-- call alone: of the call that wrote it.
--
--   timed_out  id, kind, queue, timeout_type, the instant at which its time was up, ms until that was noticed
--   woken      id, kind, queue, how its wait ended, the decisive member or -, timeout_type of that member or -
local tell = {}

function tell.timed_out(tx, task)
  local timeouts = messages(tx).timeouts
  timeouts[#timeouts + 1] = task
end

-- last_timeout returns the last task of this unit that timed out, or nil.
function tell.last_timeout(tx)
  local timeouts = tx.messages and tx.messages.timeouts
  return timeouts and timeouts[#timeouts]
end

-- timer counts a timer that has fired.
function tell.timer(tx)
  local mine = messages(tx)
  mine.timers = mine.timers + 1
end

--   member  the decisive member, or nil
function tell.woken(tx, agent, wait, member)
  local woken = messages(tx).woken
  woken[#woken + 1] = {agent, wait.reason .. " " .. (wait.winner or "-") .. " " .. (member and member.timeout_type or "-")}
end

--   more  the words after the queue
local function add(tx, what, task, more)
  local reply = tx.reply
  reply.told = reply.told or {}
  reply.told[#reply.told + 1] = what .. " " .. task.id .. " " .. task.kind .. " " .. task.queue .. " " .. more
end

-- keep adds the reports of a unit, now that the unit is written. Timeouts are before the agents that they have woken.
function tell.keep(tx)
  local mine, reply = tx.messages, tx.reply
  reply.timers_fired = reply.timers_fired + mine.timers
  for _, task in ipairs(mine.timeouts) do
    local due = task.completed_at
    reply.timed_out = reply.timed_out + 1
    add(tx, "timed_out", task, task.timeout_type .. " " .. due .. " " .. string.format("%d", tx.at - due))
  end
  for _, woken in ipairs(mine.woken) do
    add(tx, "woken", woken[1], woken[2])
  end
end

-- reply returns the reply of a call: {"told", {report, …}, reply} if the call has something to report, otherwise reply.
function tell.reply(tx, reply)
  local told = tx.reply.told
  return told and {"told", told, reply} or reply
end

-- answer returns the reply of a call that wrote something, with what the call has to report. If a
-- command failed, it raises that error instead: by then everything else is written.
local function answer(tx, reply)
  local failed = tx.reply.failed
  if failed[1] then
    error(failed[1], 0)
  end
  return tell.reply(tx, reply)
end
