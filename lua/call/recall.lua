-- recall: an agent that runs again reads its journal, and how its children ended.
--
-- ARGV[1]  agent
-- ARGV[2]  a number: returns the journal too, and the members of the newest wait if there are at most that many; "":
--          returns neither
-- ARGV[3…] names of children, the last parts of their ids
--
-- Returns  {now, {name, value, …}, {child, overdue, name, value, …}, …}: the journal, empty if it was not requested
--          or does not exist; and for each child its name and its record. There is nothing after the name if the
--          child does not exist. After 512 KiB the reply ends: request the other children again. A record that
--          cannot be read raises "BROKEN id: why"
-- Flags    no-writes
--
-- @use check/values: whole
-- @use store/record
-- @use store/state: live
-- @use store/tx: begin_read
-- @use task/body: describe
-- @use task/ending

-- newest_members returns the members of the newest wait in a journal, or "".
local function newest_members(journal)
  local newest, text = 0, nil
  for i = 1, #journal, 2 do
    local entry = tonumber(journal[i])
    if entry and entry > newest and string.sub(journal[i + 1], 1, 5) == "wait " then
      newest, text = entry, journal[i + 1]
    end
  end
  return text and string.match(text, "^[^\n]*\n[^\n]*\n([^\n]*)\n") or ""
end

local function recall_member(tx, agent, name)
  local child, fault = record.get(tx, agent .. "." .. name)
  if not child then
    error("BROKEN " .. agent .. "." .. name .. ": " .. fault, 0)
  elseif not child.status then
    return {name}, 0
  end
  local words, size = describe(tx, child), 0
  for _, word in ipairs(words) do
    size = size + #word
  end
  return {name, live(child) and ending(tx, child) and 1 or 0, unpack(words)}, size
end

local function recall(keys, argv)
  local tx, id, most = begin_read(keys[1]), argv[1], whole(argv[2])
  if #(id or "") > 1024 or not most and argv[2] ~= "" then
    error("argument 1 must be an agent's id of up to 1024 bytes, and argument 2 a number of members or empty", 0)
  end
  local names, journal, ids = {}, {}, {}
  for i = 3, #argv do
    if #argv[i] > 1024 then
      error("argument " .. i .. " has " .. #argv[i] .. " bytes, and the limit of a name is 1024", 0)
    end
    names[#names + 1] = argv[i]
  end
  if most then
    journal = redis.call("HGETALL", tx.key.journal .. id)
    local members = newest_members(journal)
    if select(2, string.gsub(members, "%S+", "")) <= most then
      for name in string.gmatch(members, "%S+") do
        names[#names + 1] = name
      end
    end
  end
  for n, name in ipairs(names) do
    ids[n] = id .. "." .. name
  end
  record.load(tx, ids)
  local answers, size = {tx.at, journal}, 0
  for n, name in ipairs(names) do
    if size > 524288 then
      break
    end
    local bytes
    answers[n + 2], bytes = recall_member(tx, id, name)
    size = size + bytes
  end
  return answers
end
