-- noted reads what an agent wants to remember: its checkpoint, if it makes one, and
-- entries for its journal. It refuses what would not fit, and writes nothing.
--
--   args  from `i` on: how many fields the checkpoint has, and name and value of each
--         (state, children, entries); how many entries, and number and text of each
--
-- Returns  {checkpoint, made, entries} and where args go on; or nil, field and why. The
--          checkpoint is a list of names and values, made has them by name
local function noted(k, id, args, i)
  local note = {entries = {}}
  local function counted(of)
    local n = tonumber(args[i])
    if not n or n < 0 or n ~= math.floor(n) or i + 2 * n > #args then
      error("note: " .. tostring(args[i]) .. " is no count of " .. of, 0)
    end
    return n
  end
  local function whole(text)
    return string.find(text, "^%d+$") and #text <= 15
  end
  local n = counted("fields")
  if n > 0 then
    note.checkpoint, note.made = {}, {}
    for j = i + 1, i + 2 * n, 2 do
      if args[j] ~= "state" and not ((args[j] == "children" or args[j] == "entries") and whole(args[j + 1])) then
        return nil, "checkpoint", "has a state, and whole numbers of children and of entries, and no more"
      end
      note.checkpoint[#note.checkpoint + 1], note.checkpoint[#note.checkpoint + 2] = args[j], args[j + 1]
      note.made[args[j]] = args[j + 1]
    end
  end
  i = i + 1 + 2 * n
  n = counted("entries")
  local size = 0
  for j = 1, n do
    local number, text = args[i + 2 * j - 1], args[i + 2 * j]
    if not whole(number) or tonumber(number) < 1 then
      return nil, "entry", "has a number that is none: they are whole, and begin with 1"
    end
    note.entries[j] = {tonumber(number), text}
    size = size + #text
  end
  local held = note.checkpoint and {} or redis.call("HMGET", k.journal .. id, "bytes")
  local count = note.checkpoint and 0 or redis.call("HLEN", k.journal .. id)
  if n > 500 then
    return nil, "entries", "are " .. n .. ", and a call takes 500"
  elseif count + n > 10000 then
    return nil, "journal", "would have more than 10000 entries since the last checkpoint: make a Checkpoint now and then"
  elseif (held[1] or 0) + size > 4194304 then
    return nil, "journal", "would have more than 4 MiB since the last checkpoint: make a Checkpoint, or store large results elsewhere"
  end
  return note, i + 1 + 2 * n
end
