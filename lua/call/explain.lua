-- explain: why a task is where it is. Its record, how it ends if that is decided and not written yet, its line,
-- its worker, and if it waits, its wait and those of its members that have not ended. It changes nothing.
--
-- ARGV[1]  id
-- ARGV[2]  where to go on with the members, as the last one said; "" for the first call
-- ARGV[3]  how many members to tell of, up to 500
--
-- Returns  {now, record, over, facts, queue, wait, member, …}, each of them a list of name and value; empty lists
--          where there is nothing, and for all but wait and members if this is not the first call
--            over    status, reason, timeout_type, error, completed_at of the end that is decided
--            facts   unreadable: why its record cannot be worked with; broken: since when that is known;
--                    doomed_by, doomed_at: the ancestor whose end ends it; attempt_over: when its attempt was
--                    out of time; ahead, lined: its place in line; workers: how many live; lease: until when
--                    its own does; goes: when its record does; turn_until: a reaper is at work until then;
--                    lacks: indexes in which it is missing (explain/lacks.lua); lags: how late recent timeouts were written (explain/lags.lua)
--            member  place, name, mask, patience, over_at, broken, lacks, and fields of its record
-- Flags    no-writes
--
-- @use check/whole
-- @use explain/decided
-- @use explain/facts
-- @use explain/put
-- @use explain/scored
-- @use explain/tell_wait
-- @use store/begin
-- @use store/record
-- @use task/describe
-- @use task/live
-- @use task/owner

-- tell_ended tells until when the record of a task is kept that has ended, or is not there.
local function tell_ended(tx, id, about)
  put(about, "goes", scored(tx.key.retained, id))
  local parent = owner(id)
  local above = parent and record.get(tx, parent)
  put(about, "owner", above and above.status)
end

local function tell_decided(tx, task, over, about)
  local ends, why = decided(tx, task)
  put(about, "unreadable", why)
  for _, name in ipairs({"reason", "timeout_type", "error", "status"}) do
    put(over, name, ends and ends[name])
  end
  put(over, "completed_at", ends and string.format("%d", ends.completed_at))
end

local function explain(keys, argv)
  local tx, id, from, most = begin(keys[1]), argv[1], argv[2], whole(argv[3], 1, 500)
  if not most then
    error("argument 3 must be how many members, 1 to 500", 0)
  elseif #id > 1024 or from ~= "" and not string.find(from, "^%-?%d+$") then
    error("arguments 1 and 2 must be an id, and the place of a member or nothing", 0)
  end
  local over, about, queue, wait = {}, {}, {}, {}
  local answers = {tx.at, {}, over, about, queue, wait}
  local task, why = record.get(tx, id)
  if from == "" then
    put(about, "unreadable", why)
    put(about, "broken", scored(tx.key.broken, id))
    if task and task.status then
      answers[2] = describe(tx, task)
    end
    if task and live(task) then
      facts(tx, task, about, queue)
      tell_decided(tx, task, over, about)
    else
      tell_ended(tx, id, about)
    end
  end
  if task and task.status == "WAITING" then
    tell_wait(tx, id, {from = from, most = most}, wait, answers)
  end
  return answers
end
