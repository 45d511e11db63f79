-- remember: an agent stores the results of steps that it must not repeat, and the checkpoint from which its next attempt
-- continues.
--
-- ARGV[1]  agent
-- ARGV[2]  epoch, as fetch returned it
-- ARGV[3]  worker
-- ARGV[4…] the note to store (agent/note.lua)
--
-- Returns  {"OK"}                     the note is stored, by this call or by an earlier copy of it
--          {"LOST", status}           the agent no longer belongs to this claim
--          {"CANCELLING", instant}    the agent must stop, and can begin nothing new
--          {"MISSING"}                there is no such task
--          {"INVALID", field, why}    nothing was stored
--          A record that cannot be read raises "BROKEN id: why"
-- Ends     the agent, or its attempt, if its time was up
-- Flags    allow-oom        what has happened must be remembered
--
-- @use agent/note: check_note, read_note, write_note
-- @use store/tell: answer
-- @use store/tx: begin, read_root
-- @use task/report: running_agent
-- @use unit/unit

local function remember_one(tx, claim, note)
  local task, refusal = running_agent(tx, claim, "remember")
  if not task then
    return refusal
  end
  local field, fault = check_note(tx, task.id, note)
  if field then
    return {"INVALID", field, fault}
  end
  write_note(tx, task, note)
  return {"OK"}
end

local function remember(keys, argv)
  local note, rest = read_note(argv, 4)
  if rest <= #argv then
    error("argument " .. rest .. " is one too many: the note ends before it", 0)
  end
  local tx = read_root(begin(keys[1]))
  local reply = unit(tx, remember_one, {id = argv[1], epoch = argv[2], worker = argv[3]}, note)
  if reply[1] == "BROKEN" then -- raised only here: the record is put aside by now
    error("BROKEN " .. argv[1] .. ": " .. reply[2], 0)
  end
  return answer(tx, reply)
end
