-- unfit_note returns a refusal if a note cannot be stored, or does not fit the wait that it comes with; or nil.
--
--   s  agent/read_suspension.lua
--
-- @use store/record
-- @use agent/check_note
local function unfit_note(tx, s)
  local field, why = check_note(tx, s.id, s.note)
  if field then
    return {"INVALID", field, why}
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
