-- remembered_answer returns the answer that the journal has for this wait, or nil if the agent has not been here yet.
-- It also answers if the agent's code has changed, or if the wait is before the checkpoint.
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
    return {"INVALID", "entry", "is before the checkpoint: this call is late, or the checkpoint belongs to another place in the code"}
  end
end
