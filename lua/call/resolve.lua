-- resolve: a client settles promises by their ids.
--
-- ARGV[1]  call: identifies this call; a repeat has the same
-- ARGV[2]  verb: complete or fail
-- ARGV[3…] id, note, …: the result of complete, the error of fail, opaque; up to 500
--
-- Returns  for each id one of
--   {"OK", status}               the promise is settled; a repeat of the call gets this too
--   {"ALREADY", status, note}    the task had ended: note is its result if COMPLETED, its error if not
--   {"MISSING"}                  there is no such task
--   {"INVALID", field, why}      the task is not a promise, or the result is not of its result_type
--   {"BROKEN", why}              its record cannot be read
-- Ends     COMPLETED, FAILED; promises that must end: FAILED if their time was up, CANCELLED if their owner has ended
-- Flags    allow-oom        a full Redis must still drain
--
-- @use check/result_type
-- @use check/values: names
-- @use store/record
-- @use store/state: live
-- @use store/tell: answer
-- @use store/tx: begin, memo, read_root
-- @use task/body
-- @use task/finish: finish, load_task
-- @use task/plan: refuse
-- @use unit/unit

local function resolve_one(tx, id, note, verb, call)
  local task, fault = load_task(tx, id)
  if not task then
    return {"BROKEN", fault}
  elseif not task.status then
    return {"MISSING"}
  elseif not task.role then
    return {"INVALID", "id", "is not the id of a promise: its worker settles this task, and cancel ends it"}
  elseif not live(task) then
    if task.call == call then
      return {"OK", task.status}
    end
    refuse(tx, task, verb == "complete" and "resolve" or "reject", "", "")
    return {"ALREADY", task.status, body(tx, task)}
  end
  local of = verb == "complete" and result_type.of(task)
  local why = of and result_type.refuse(memo(tx, "result types"), of, note)
  if why then
    return {"INVALID", "result", why}
  elseif verb == "complete" then
    finish(tx, task, {status = "COMPLETED", result = note, call = call})
  else
    finish(tx, task, {status = "FAILED", reason = "rejected", error = note ~= "" and note or "Promise rejected", call = call})
  end
  return {"OK", task.status}
end

local function resolve_all(tx, argv, verb, call)
  local answers, ids = {}, {}
  for i = 3, #argv, 2 do
    ids[#ids + 1] = argv[i]
  end
  record.load(tx, ids)
  for n, id in ipairs(ids) do
    tx.on = id
    answers[n] = resolve_one(tx, id, argv[2 * n + 2], verb, call)
  end
  return answers
end

local function resolve(keys, argv)
  local call, verb = names.word("call", argv[1]), argv[2]
  if verb ~= "complete" and verb ~= "fail" then
    error("argument 2 must be complete or fail", 0)
  elseif #argv % 2 == 1 then
    error("argument " .. #argv .. " has no note: give an empty one", 0)
  elseif #argv > 1002 then
    error("a call takes up to 500 ids", 0)
  end
  local tx = read_root(begin(keys[1]))
  return answer(tx, unit(tx, resolve_all, argv, verb, call))
end
