-- write_note adds a note to an agent's journal. A checkpoint replaces everything before it.
--
-- A late request can arrive after its repeat was answered and the agent has continued. So a checkpoint that exists, or
-- that a later one has replaced, is not made again, and entries before the current checkpoint are not written. The
-- limit of a wait after the checkpoint is kept: an attempt that makes the checkpoint again does not get more time
-- for the same wait.
--
-- @use wait/ends
-- @use wait/journal
local function write_note(tx, task, note)
  local there = journal.read(tx, task.id, "entries", "state", "until")
  local past = tonumber(there[1] or nil) or -1
  local made = note.made or {}
  local entries = tonumber(made.entries) or 0
  if note.checkpoint and (entries > past or entries == past and made.state ~= there[2]) then
    past = entries
    local later = there[3] and tonumber(string.match(there[3], "^%d+")) > entries
    journal.checkpoint(tx, task, note.checkpoint, later and there[3] or nil)
  end
  local fresh = {}
  for _, entry in ipairs(note.entries) do
    if entry[2] == "collect" then
      ends.begin(tx, task)
    end
    if entry[1] > past then
      fresh[#fresh + 1] = entry
    end
  end
  journal.add(tx, task, fresh)
end
