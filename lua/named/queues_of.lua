-- queues_of reads the queues that a worker serves: names, separated by commas or spaces. A name can have = and a number:
-- how many tasks it gives in the first round (task/claim.lua).
--
-- Returns queue, quota, …: the quota is the number of slots if none is given
--
-- @use check/values: names, whole
-- @use named/options: clip, reject
local function queues_of(text, slots)
  local words = {}
  if #text > 65536 then
    reject("INVALID", "queues has " .. #text .. " bytes, and may have 65536")
  end
  for word in string.gmatch(text, "[^%s,]+") do
    local queue, quota = string.match(word, "^([^=]*)=?(.*)$")
    local _, why = names.queue(queue)
    if why then
      reject("INVALID", 'the queue "' .. clip(queue) .. '" ' .. why)
    elseif quota ~= "" and not whole(quota) then
      reject("INVALID", 'the quota "' .. clip(quota) .. '" of ' .. queue .. " must be a whole number")
    end
    words[#words + 1] = queue
    words[#words + 1] = quota ~= "" and quota or slots
  end
  if #words > 2000 then
    reject("INVALID", "queues has " .. #words / 2 .. " names, and may have 1000")
  elseif not words[1] then
    reject("INVALID", "queues has no name: give names with commas or spaces between them")
  end
  return words
end
