-- owner is the id of the task that a child belongs to, nil for a root task. Ancestry is read off the
-- id: the owner's id, a dot, a counter or a name. What ends in a bang and a word is a hook
-- (task/hook.lua), a root task whatever stands before the bang.
local function owner(id)
  if string.find(id, ".", 1, true) then
    return string.match(id, "^(.+)%.[^.!]+$")
  end
end
