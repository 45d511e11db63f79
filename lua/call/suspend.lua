-- suspend: an agent waits for its children, and gives up its worker until they have settled. The call stores
-- everything or nothing: the new children, the note, the wait, and the new status.
--
-- ARGV[1]  agent
-- ARGV[2]  epoch, as fetch returned it
-- ARGV[3]  worker
-- ARGV[4]  call: identifies this call; a repeat has the same
-- ARGV[5]  number of fields of the wait; then name and value of each:
--            entry       its number in the journal; required, as is digest
--            mode, need  agent/rules.lua; mode is all if absent or empty
--            digest      one word. It must be the same when the agent comes to this wait again
--            label       a description of the wait for people, one line
--            why         the agent's reason for the wait, for people; up to 1024 bytes
--            limit_ms    the longest time of the wait, or "computed" (agent/suspend.lua)
--            from        start of this limit: registered (default), first: the first end, or an instant in ms
--            on_timeout  proceed_with_available or fail, for the event
--            on_pending  for members that have not ended at the limit: cancel (default) or keep
--            on_losers   for members that the wait no longer needs: keep (default) or cancel
--            mask        five letters (agent/rules.lua), "obbbb" if absent
--            most        the largest number of members, 10000 if absent
--            part, of    this is part 1…n of n of its members; 1 of 1 if absent
-- then     number of members; for each its id, its own limit in ms or "", mask or ""
-- then     the note to store (agent/note.lua)
-- then     children to create (task/enqueue.lua)
--
-- All parts but the last only add members: the agent continues to run. The same id twice is one member.
--
-- Returns  {now, "WAITING"}            the agent waits; a repeat of the call gets this too
--          {now, "READY", answer}      the answer is known, and the agent continues to run
--          {now, "MORE"}               this part is stored
--          {now, "LOST", status}       the agent no longer belongs to this claim
--          {now, "CANCELLING", instant}  the agent must stop, and can begin nothing new
--          {now, "MISSING"}            there is no such task
--          {now, "DIVERGED", label}    an earlier run had another wait here, with this label
--          {now, "FOREIGN", id}        that task is not a child of this agent
--          {now, "UNKNOWN", id}        the agent has no such child
--          {now, "CHILD", n, word, …}  the nth child was refused, as in enqueue
--          {now, "INVALID", field, why}
--          all of these but the first three stored nothing. A record that cannot be read raises "BROKEN id: why"
-- Ends     tasks that it reads, if their time was up
-- Flags
--
-- @use agent/suspend: suspend_agent
-- @use agent/suspension: check_wait, read_suspension
-- @use store/tell: answer
-- @use store/tx: begin, read_root
-- @use unit/unit
-- @use wait/wait: fire

-- wake cancels the members that the wait no longer needs, because it fired before it began.
local function wake(tx, id)
  fire(tx, id)
end

local function suspend(keys, argv)
  local s = read_suspension(argv)
  local tx = read_root(begin(keys[1]), s.kinds)
  tx.strict = true
  local field, fault = check_wait(s)
  if field then
    return {tx.at, "INVALID", field, fault}
  end
  local reply = unit(tx, suspend_agent, s)
  tx.strict = false
  if reply[1] == "BROKEN" then -- raised only here: the record is put aside by now
    error("BROKEN " .. s.id .. ": " .. reply[2], 0)
  elseif reply.fired then
    unit(tx, wake, s.id)
  end
  return answer(tx, {tx.at, unpack(reply)})
end
