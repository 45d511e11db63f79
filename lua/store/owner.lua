-- owner returns the id of the task that a child belongs to, or nil for a root task. It reads ancestry from the
-- id: the owner's id, a dot, and a counter or a name. An id that ends in a bang and a word is a hook
-- (task/finish.lua): a root task, whatever is before the bang.
local function owner(id)
  if string.find(id, ".", 1, true) then
    return string.match(id, "^(.+)%.[^.!]+$")
  end
end
