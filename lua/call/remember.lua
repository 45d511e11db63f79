-- remember: an agent writes down what it must not do, or draw, a second time, and where its replay is to begin.
--
-- ARGV[1]  agent
-- ARGV[2]  epoch, as fetch returned it
-- ARGV[3]  worker
-- ARGV[4…] what to note (wait/read_note.lua)
--
-- Returns  {"OK"}                     it is written; also when it was before
--          {"LOST", status}           the agent no longer belongs to this claim
--          {"CANCELLING", instant}    it is to stop, and begins nothing any more
--          {"MISSING"}                no such task
--          {"INVALID", field, why}    nothing was written
-- Ends     what is late
-- Flags    allow-oom        what has happened must be remembered
--
-- @use store/answer
-- @use store/begin
-- @use store/read_root
-- @use store/unit
-- @use task/running_agent
-- @use wait/check_note
-- @use wait/read_note
-- @use wait/write_note

local function remember_one(tx, claim, note)
  local task, refusal = running_agent(tx, claim, "remember")
  if not task then
    return refusal
  end
  local field, why = check_note(tx, task.id, note)
  if field then
    return {"INVALID", field, why}
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
  if reply[1] == "BROKEN" then -- told as an error, now that it is put aside
    error("BROKEN " .. argv[1] .. ": " .. reply[2], 0)
  end
  return answer(tx, reply)
end
