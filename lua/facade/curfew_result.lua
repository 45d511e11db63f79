-- curfew_result: returns how a task ended. If it has not ended, its id will be published on the channel `ended` of the
-- partition when it ends. Subscribe first, then call this, wait for the id or until `until`, and call this again.
--
-- KEYS[1]  root of a partition
-- ARGV[1]  id
--
-- Returns  {"id", id, "status", status, "channel", name, "until", ms}: until is the next instant at which
--          one of its own limits can end it; absent without a limit
--          {"id", id, "status", status, "completed_at", ms, "result", bytes} of a task that is COMPLETED;
--          of a task that is FAILED or CANCELLED: "error", "reason", and "code" and "timeout_type" if it has them
-- Ends     the task, if its time is up
-- Flags    allow-oom        a waiter must see the end on a full Redis too
--
-- @use call/read
-- @use call/watch
-- @use named/options: first, id_of, options, reject, root_of
-- @use named/reply: plain, reply
-- @use store/keys
local outcome = {completed_at = true, result = true, error = true, reason = true, code = true, timeout_type = true}

local function result(roots, argv)
  local root = root_of(roots)
  local id = id_of(first(argv, "the id"), root)
  options.read(argv, 2, {})
  local status, instant = unpack(plain(watch(roots, {id}))[2])
  if status == "" then
    reject("MISSING", "there is no task " .. id)
  elseif status == "BROKEN" then
    reject("BROKEN", id .. ": its record cannot be read")
  end
  local words = {"id", id, "status", status}
  if status == "PENDING" or status == "RUNNING" or status == "WAITING" then
    words[5], words[6] = "channel", keys.of(root).ended
    if instant ~= "" then
      words[7], words[8] = "until", instant
    end
    return words
  end
  local record = read(roots, {id})[2]
  for i = 3, #record, 2 do -- the first two are no names and values
    if outcome[record[i]] then
      words[#words + 1] = record[i]
      words[#words + 1] = record[i + 1]
    end
  end
  return words
end

local function curfew_result(roots, argv)
  return reply(result, roots, argv)
end
