-- suspend: an agent waits for children of its own, and gives up its worker until they have settled. All or
-- nothing: the children that it has made up to here, what it wants to remember, the wait, and its new status.
--
-- ARGV[1]  agent
-- ARGV[2]  epoch, as fetch returned it
-- ARGV[3]  worker
-- ARGV[4]  call: kept over repeats of this call
-- ARGV[5]  how many fields the wait has; then name and value of each:
--            entry       its number in the journal; required, as is digest
--            mode, need  wait/thresholds.lua; mode is all if absent or empty
--            digest      of all that must be the same when the agent comes here again, one word
--            label       says the same to people, one line
--            why         the agent waits, in words of its own; up to 1024 bytes
--            limit_ms    how long it may take, or "computed" (wait/wait_limit.lua)
--            from        when that begins: registered (default), or first: with the first end
--            on_timeout  proceed_with_available or fail, for the event
--            on_pending  of members that have not ended at the limit: cancel (default) or keep
--            on_losers   of those that nobody needs any more: keep (default) or cancel
--            mask        five letters (wait/counts_as.lua), "obbbb" if absent
--            most        members that it may have, 10000 if absent
--            part, of    this is part 1…n of n of its members; 1 of 1 if absent
-- then     how many members; for each its id, ms of patience or "", mask or ""
-- then     what to note (wait/read_note.lua)
-- then     children to make (task/read_tasks.lua)
--
-- Parts but the last only begin to count: the agent goes on running. The same id twice is one member.
--
-- Returns  {now, "WAITING"}            the agent waits; also when this call had done it before
--          {now, "READY", answer}      the answer is known, and the agent runs on
--          {now, "MORE"}               this part is taken
--          {now, "LOST", status}       the agent no longer belongs to this claim
--          {now, "CANCELLING", instant}  it is to stop, and begins nothing any more
--          {now, "MISSING"}            no such task
--          {now, "DIVERGED", label}    it was at another wait when it was here before
--          {now, "FOREIGN", id}        that is no child of this agent
--          {now, "UNKNOWN", id}        it has no such child
--          {now, "CHILD", n, word, …}  the nth child was refused, as enqueue does
--          {now, "INVALID", field, why}
--          all of these but the first three changed nothing
-- Ends     what is late
-- Flags
--
-- @use store/answer
-- @use store/begin
-- @use store/own
-- @use store/read_root
-- @use store/unit
-- @use wait/check_wait
-- @use wait/read_suspension
-- @use wait/suspend_agent

-- wake has members cancelled that a wait does not need, which had fired before it began.
local function wake(tx, id)
  own(tx, "fired")[1] = id
end

local function suspend(keys, argv)
  local s = read_suspension(argv)
  local tx = read_root(begin(keys[1]), s.kinds)
  tx.strict = true
  local field, why = check_wait(s)
  if field then
    return {tx.at, "INVALID", field, why}
  end
  local reply = unit(tx, suspend_agent, s)
  tx.strict = false
  if reply[1] == "BROKEN" then -- told as an error, now that it is put aside
    error("BROKEN " .. s.id .. ": " .. reply[2], 0)
  elseif reply.fired then
    unit(tx, wake, s.id)
  end
  return answer(tx, {tx.at, unpack(reply)})
end
