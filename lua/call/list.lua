-- list: returns the tasks of one index that match a filter, the newest first. A task can be in several indexes. list
-- returns it for one of them (explain/filter.lua), for the children of an owner, and for all that are retained of an
-- owner.
--
-- ARGV[1]  index: delayed, waits, limits, deadlines, retained; ready and dead of a queue; claims of a worker;
--          children of an owner; held of a set: queue,kind or queue,kind,programs
-- ARGV[2]  that queue, worker, owner or set; "" for the others
-- ARGV[3]  score of the entry behind which to begin; "": at the newest
-- ARGV[4]  id of that entry. The entry need not exist any more. Of several entries with one score that with the greatest
--          id is the newest
-- ARGV[5]  how many entries to look at, up to 500
-- ARGV[6…] name, value, …: kind; queue; owner; status, several separated by commas; timed_out 1; unbounded 1; since, an instant: created
--          or ended then or later; before, an instant: created before then, and not ended then or later; error, a part
--          of its error or of the error of its newest attempt
--
-- Returns  {now, looked, score, id, more, broken, {id, score, overdue, name, value, …}, …}: looked is how many entries
--          the call looked at, score and id are of the last of them, more is 1 if there are more, and broken is how many
--          records cannot be read. A record is without payload and result. After a MiB the reply ends
-- Flags    no-writes
--
-- @use check/values: whole
-- @use explain/filter: listed_in, matches, newest, read_filter
-- @use store/record
-- @use store/state: live, owner
-- @use store/tx: begin_read
-- @use task/body: describe
-- @use task/ending

local of = {delayed = false, waits = false, limits = false, deadlines = false, retained = false, ready = true, held = true, dead = true,
  claims = true, children = true}

-- line returns the answer for a task and its size, or nil if the task belongs to another index or does not match.
local function line(tx, task, score, index, filter)
  local here = index == "children" or index == "retained" and filter.owner or listed_in(tx, task) == index
  if not here or not matches(tx, task, filter) then
    return nil, 0
  end
  local words, size = describe(tx, task, true), 0
  for _, word in ipairs(words) do
    size = size + #word
  end
  return {task.id, score, live(task) and ending(tx, task) and 1 or 0, unpack(words)}, size
end

-- look adds matching tasks until the answers have a MiB, and returns the number of entries that it has looked at. Tasks of
-- other owners are skipped without reading them.
local function look(tx, entries, index, filter, answers)
  local ids, size, looked = entries.ids, 0, 0
  while looked < #ids and size < 1048576 do
    local some, last = {}, math.min(looked + 50, #ids)
    for n = looked + 1, last do
      if not filter.owner or owner(ids[n]) == filter.owner then
        some[#some + 1] = ids[n]
        some[ids[n]] = entries.scores[n]
      end
    end
    record.load(tx, some)
    for _, id in ipairs(some) do
      local task, bytes = record.get(tx, id), 0
      if not task then
        answers[6] = answers[6] + 1
      elseif task.status then
        answers[#answers + 1], bytes = line(tx, task, some[id], index, filter)
      end
      size = size + bytes
    end
    looked = last
  end
  return looked
end

local function list(keys, argv)
  local index, most, score, behind = argv[1], whole(argv[5], 1, 500), argv[3], nil
  if of[index] == nil or of[index] ~= (argv[2] ~= "") or #argv[2] > 1024 or not most or score ~= "" and not string.find(score, "^-?%d+%.?%d*e?%+?%d*$") then
    error("list takes an index, what it is of, a score, an id, and how many entries, 1 to 500; names have up to 1024 bytes", 0)
  elseif score ~= "" then
    behind = {score = score, id = argv[4]}
  end
  local filter, tx = read_filter(argv, 6), begin_read(keys[1])
  local ids, scores, more = newest(tx.key[index] .. argv[2], index == "children", behind, most)
  local answers = {tx.at, 0, "", "", 0, 0}
  local looked = look(tx, {ids = ids, scores = scores}, index, filter, answers)
  answers[2], answers[3], answers[4] = looked, scores[looked] or "", ids[looked] or ""
  answers[5] = (more or looked < #ids) and 1 or 0
  return answers
end
