-- cancel: a client cancels tasks. Tasks of a higher priority end first, and children before the owners that the call names too.
--
-- ARGV[1]  call: identifies this call; a repeat has the same
-- ARGV[2]  reason, opaque, up to 8192 bytes; "" for none
-- ARGV[3]  owner of all tasks; "": of any owner, or without one
-- ARGV[4…] ids, up to 500
--
-- Returns  for each id one of
--   {"CANCELLED"}                the task was live and is now cancelled; a repeat of the call gets this too
--   {"CANCELLING", instant}      its handler runs and has a grace: the task ends when the handler stops, or at
--                                that instant
--   {"ALREADY", status, note}    the task had ended: note is its result if COMPLETED, its error if not
--   {"MISSING"}                  there is no such task
--   {"BROKEN", why}              its record cannot be read
--   {"FOREIGN", id}              that task is not a child of the owner: no task was cancelled
-- Ends     CANCELLED; FAILED if the time of the task was up
-- Flags    allow-oom        a full Redis must still drain
--
-- @use check/values: names
-- @use store/record
-- @use store/state: live, owner
-- @use store/tell: answer
-- @use store/tx: begin, read_root
-- @use task/body: body, by_priority
-- @use task/ending: cancelled
-- @use task/finish: cancel_task, load_task
-- @use task/plan: refuse
-- @use unit/unit

local function cancel_one(tx, id, call, reason)
  local task, fault = load_task(tx, id)
  if not task then
    return {"BROKEN", fault}
  elseif not task.status then
    return {"MISSING"}
  elseif live(task) then
    cancel_task(tx, task, cancelled(reason, call), reason, call)
    return live(task) and {"CANCELLING", task.grace_at} or {"CANCELLED"}
  end
  -- After a grace, task.call may come from the handler's report. Then only cancelled_by has the call that cancelled.
  if task.status == "CANCELLED" and (task.call == call or task.cancelled_by == call) then
    return {"CANCELLED"}
  end
  refuse(tx, task, "cancel", "", "")
  return {"ALREADY", task.status, body(tx, task)}
end

-- before_owners makes sure that a task ends before its owners that the call names too, because these would end it with
-- another reason: it gets the highest of their priorities, and of equal priorities the deepest task comes first.
--
--   given  the priorities of the tasks that the call names, by id
local function before_owners(o, given)
  o.priority, o.place = given[o.id], o.n
  local above = #o.id <= 1024 and owner(o.id) -- no id is longer
  while above do
    o.priority, o.place = math.max(o.priority, given[above] or 0), o.place - 500 -- a call has 500 ids
    above = owner(above)
  end
end

local function cancel_all(tx, ids, call, reason)
  local order, answers, given = {}, {}, {}
  record.load(tx, ids)
  for n, id in ipairs(ids) do
    local task = record.get(tx, id)
    given[id] = task and tonumber(task.priority) or 0
    order[n] = {id = id, n = n}
  end
  for _, o in ipairs(order) do
    before_owners(o, given)
  end
  by_priority(order)
  for _, o in ipairs(order) do
    tx.on = o.id
    answers[o.n] = cancel_one(tx, o.id, call, reason)
  end
  return answers
end

local function cancel(keys, argv)
  local call, reason, parent = names.word("call", argv[1]), argv[2], argv[3]
  local ids, foreign = {}, {}
  if not parent or #argv > 503 or #reason > 8192 then -- the reason is kept with each task
    error("cancel takes a call, a reason of up to 8192 bytes, an owner or an empty text, and up to 500 ids", 0)
  end
  for i = 4, #argv do
    ids[i - 3] = argv[i]
    if parent ~= "" and owner(argv[i]) ~= parent then
      for n = 1, #argv - 3 do
        foreign[n] = {"FOREIGN", string.sub(argv[i], 1, 1024)}
      end
      return foreign
    end
  end
  local tx = read_root(begin(keys[1]))
  return answer(tx, unit(tx, cancel_all, ids, call, reason))
end
