-- remembered_answer is what the journal says of this wait, if the agent was here before; nil if it was not.
--
-- @use wait/journal
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
    return {"INVALID", "entry", "is before the checkpoint: this call comes late, or the checkpoint is not of here"}
  end
end
