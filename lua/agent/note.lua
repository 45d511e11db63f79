-- Notes: the checkpoint and the journal entries that an agent sends with a call.
--
-- @use check/values: digits, number
-- @use store/record
-- @use wait/ends
-- @use wait/journal

-- check_note checks whether a note can be added to an agent's journal. It returns the invalid field and the error, or nil.
-- An agent must begin to collect before it has many children, because the ends so far are copied then (wait/ends.lua).
local function check_note(tx, id, note)
  if note.field then
    return note.field, note.fault
  end
  local agent = record.get(tx, id)
  if note.collects and not agent.collects and (tonumber(agent.children) or 0) > 500 then
    return "entry", "must not begin to collect if the agent has more than 500 children: write collect before them"
  end
  local key = tx.key.journal .. id
  local bytes = redis.call("HGET", key, "bytes") or 0
  local count = redis.call("HLEN", key)
  if note.checkpoint then -- it replaces all entries
    bytes, count = 0, 0
  end
  if count + #note.entries > 10000 then
    return "journal", "would have more than 10000 entries since the last checkpoint: make Checkpoints more often"
  elseif bytes + note.size > 4194304 then
    return "journal", "would have more than 4 MiB since the last checkpoint: make a Checkpoint, or store large results elsewhere"
  end
end

-- read_note reads a note from argument i on: the number of fields of the checkpoint (0: no checkpoint), name and value of
-- each (state, children, entries), the number of entries, and number and text of each.
--
-- Returns  {checkpoint, made, entries, size, collects}, and the position of the next argument
--            checkpoint    a list of names and values; made has the same by name
--            collects      an entry begins to collect
--            field, fault  the first invalid field and its error
local function read_note(argv, i)
  local note = {entries = {}, size = 0}
  local n = number(argv, i, 2, "fields of the checkpoint")
  if n > 0 then
    note.checkpoint, note.made = {}, {}
    for j = i + 1, i + 2 * n, 2 do
      local name, value = argv[j], argv[j + 1]
      if note.made[name] or name ~= "state" and not ((name == "children" or name == "entries") and digits(value)) then
        note.field, note.fault = "checkpoint", "may have state, children and entries, each once; the last two are whole numbers"
      end
      note.checkpoint[#note.checkpoint + 1], note.checkpoint[#note.checkpoint + 2] = name, value
      note.made[name] = value
    end
  end
  i = i + 1 + 2 * n
  n = number(argv, i, 2, "entries")
  if n > 500 then
    note.field, note.fault = "entries", "are " .. n .. ", and a call takes 500"
  end
  for j = 1, n do
    local count, text = argv[i + 2 * j - 1], argv[i + 2 * j]
    if not digits(count) or tonumber(count) < 1 then
      note.field, note.fault = "entry", "must have a whole number from 1 on"
      break
    end
    note.entries[j] = {tonumber(count), text}
    note.collects = note.collects or text == "collect"
    note.size = note.size + #text
  end
  return note, i + 1 + 2 * n
end

-- unfit_note returns a refusal if a note cannot be stored, or contradicts the wait that it comes with; otherwise nil.
--
--   s  agent/suspension.lua
local function unfit_note(tx, s)
  local field, fault = check_note(tx, s.id, s.note)
  if field then
    return {"INVALID", field, fault}
  elseif s.note.made and tonumber(s.note.made.entries or 0) >= tonumber(s.wait.entry) then
    return {"INVALID", "checkpoint", "counts this wait among the entries before it"}
  end
  if s.wait.mode == "collect" and not (s.note.collects or record.get(tx, s.id).collects) then
    return {"INVALID", "mode", "must come after the entry collect of the journal: send it with this call or before it"}
  end
  for _, entry in ipairs(s.note.entries) do
    if entry[1] == tonumber(s.wait.entry) then
      return {"INVALID", "entry", "is the number of the wait itself: give the entries other numbers"}
    end
  end
end

-- write_note adds a note to an agent's journal. A checkpoint replaces everything before it.
--
-- A delayed request can arrive after its repeat was answered and the agent has continued. So a checkpoint is ignored if it
-- is the current one or older, and so are entries before the current one. The stored limit of a wait after the checkpoint
-- is kept, because an attempt that writes the checkpoint again must not get more time for the same wait.
local function write_note(tx, task, note)
  local there = journal.read(tx, task.id, "entries", "state", "until")
  local past = tonumber(there[1]) or -1
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

-- remembered_answer returns the answer to a wait that the journal decides, or nil. The journal has the result of the wait,
-- another entry with its number (the agent's code has changed), or a checkpoint after it.
local function remembered_answer(tx, s)
  local w = s.wait
  local f = journal.read(tx, s.id, w.entry, "entries")
  if f[1] then
    local digest, label = string.match(f[1], "^wait %S+ %S+ %S+ (%S+)\n([^\n]*)")
    if digest == w.digest then
      return {"READY", f[1]}
    end
    return {"DIVERGED", label or string.match(f[1], "^[^\n]*")}
  elseif f[2] and tonumber(w.entry) <= tonumber(f[2]) then
    return {"INVALID", "entry", "is before the checkpoint: this call is late, or the checkpoint belongs to another place in the code"}
  end
end
