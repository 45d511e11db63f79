-- check_note checks whether a note can be added to an agent's journal. It returns the field that is wrong and why,
-- or nil. An agent begins to collect while it has few children, whose ends it is then given (wait/ends.lua).
--
-- @use store/record
local function check_note(tx, id, note)
  if note.field then
    return note.field, note.why
  end
  local agent = record.get(tx, id)
  if note.collects and not agent.collects and (tonumber(agent.children or 0) or 0) > 500 then
    return "entry", "must not begin to collect if the agent has more than 500 children: write collect before them"
  end
  local key = tx.key.journal .. id
  local bytes = redis.call("HGET", key, "bytes") or 0
  local count = redis.call("HLEN", key)
  if note.checkpoint then -- it replaces all entries
    bytes, count = 0, 0
  end
  if count + #note.entries > 10000 then
    return "journal", "would have more than 10000 entries since the last checkpoint: make Checkpoints more often"
  elseif bytes + note.size > 4194304 then
    return "journal", "would have more than 4 MiB since the last checkpoint: make a Checkpoint, or store large results elsewhere"
  end
end
