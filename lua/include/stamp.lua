-- stamp is the script's one clock reading as text. Redis prints a number it is
-- given with 17 digits, at ten times the cost of passing a string, so what is
-- written a task is made into text once a call.
local function stamp(k, at)
  local text = k.stamp
  if not text then
    text = string.format("%d", at)
    k.stamp = text
  end
  return text
end
