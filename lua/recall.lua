-- recall: an agent that runs again asks what it knows: its journal, and how its children
-- ended.
--
-- KEYS[1]  root of the partition
-- ARGV[1]  agent
-- ARGV[2]  how many members of its newest wait to tell of, together with the journal; "" for neither
-- ARGV[3…] names of children, the last parts of their ids
--
-- Returns  {now, {name, value, …}, {child, overdue, name, value, …}, …}: the journal, empty
--          if it was not asked for or there is none; and for each child its name and
--          fields as they are stored, nothing after the name if there is no such child.
--          After 512 KiB no more children are told of: ask for them again
-- Flags    no-writes
--
-- @include keys
-- @include now
-- @include live
-- @include ending

local k, at = keys(KEYS[1]), now()
local id, most = ARGV[1], tonumber(ARGV[2])
local names, journal = {}, {}
for i = 3, #ARGV do
  names[#names + 1] = ARGV[i]
end
if most then
  journal = redis.call("HGETALL", k.journal .. id)
  local newest, told = 0, nil
  for i = 1, #journal, 2 do
    local entry = tonumber(journal[i])
    if entry and entry > newest and string.sub(journal[i + 1], 1, 5) == "wait " then
      newest, told = entry, journal[i + 1]
    end
  end
  local members = told and string.match(told, "^[^\n]*\n[^\n]*\n([^\n]*)\n") or ""
  local n = select(2, string.gsub(members, "%S+", ""))
  if n <= most then
    for name in string.gmatch(members, "%S+") do
      names[#names + 1] = name
    end
  end
end
local answers, size = {at, journal}, 0
for _, name in ipairs(names) do
  if size > 524288 then
    break
  end
  local child = {id = id .. "." .. name}
  local flat = redis.call("HGETALL", k.task .. child.id)
  local answer = {name}
  if #flat > 0 then
    for i = 1, #flat, 2 do
      child[flat[i]] = flat[i + 1]
    end
    answer[2] = live(child) and ending(k, child, at) and 1 or 0
    for i = 1, #flat do
      answer[i + 2] = flat[i]
      size = size + #flat[i]
    end
  end
  answers[#answers + 1] = answer
end
return answers
