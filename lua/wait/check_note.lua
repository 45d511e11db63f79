-- check_note says what keeps a note out of an agent's journal: it returns the field and why, or nil.
local function check_note(tx, id, note)
  if note.field then
    return note.field, note.why
  end
  local key = tx.key.journal .. id
  local bytes = redis.call("HGET", key, "bytes") or 0
  local count = redis.call("HLEN", key)
  if note.checkpoint then -- it takes the place of what is there
    bytes, count = 0, 0
  end
  if count + #note.entries > 10000 then
    return "journal", "would have more than 10000 entries since the last checkpoint: make a Checkpoint now and then"
  elseif bytes + note.size > 4194304 then
    return "journal", "would have more than 4 MiB since the last checkpoint: make a Checkpoint, or store large results elsewhere"
  end
end
