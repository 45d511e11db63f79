-- read_note reads what an agent wants to remember from argument i on: the number of fields of its checkpoint
-- (0: no checkpoint), with name and value of each (state, children, entries); then the number of entries, with number
-- and text of each.
--
-- Returns  {checkpoint, made, entries, size}, and the position of the next argument. checkpoint is a list of
--          names and values, made has them by name. note.collects says whether an entry begins to collect. note.field and note.why say what is wrong with it
--
-- @use check/digits
-- @use check/number
local function read_note(argv, i)
  local note = {entries = {}, size = 0}
  local n = number(argv, i, 2, "fields of the checkpoint")
  if n > 0 then
    note.checkpoint, note.made = {}, {}
    for j = i + 1, i + 2 * n, 2 do
      local name, value = argv[j], argv[j + 1]
      if note.made[name] or name ~= "state" and not ((name == "children" or name == "entries") and digits(value)) then
        note.field, note.why = "checkpoint", "may have state, children and entries, each once; the last two are whole numbers"
      end
      note.checkpoint[#note.checkpoint + 1], note.checkpoint[#note.checkpoint + 2] = name, value
      note.made[name] = value
    end
  end
  i = i + 1 + 2 * n
  n = number(argv, i, 2, "entries")
  if n > 500 then
    note.field, note.why = "entries", "are " .. n .. ", and a call takes 500"
  end
  for j = 1, n do
    local count, text = argv[i + 2 * j - 1], argv[i + 2 * j]
    if not digits(count) or tonumber(count) < 1 then
      note.field, note.why = "entry", "must have a whole number from 1 on"
      break
    end
    note.entries[j] = {tonumber(count), text}
    note.collects = note.collects or text == "collect"
    note.size = note.size + #text
  end
  return note, i + 1 + 2 * n
end
