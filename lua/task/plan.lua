-- plan checks a task that a caller wants to make. If the task exists already or is refused, it returns an answer.
-- Otherwise it returns nil, its draft and its owner. It writes nothing for the task, but can end tasks that are late.
--
--   task  shape, id and payload (task/read_tasks.lua)
--
-- @use check/id
-- @use store/own
-- @use store/record
-- @use task/check_shape
-- @use task/draft
-- @use task/find_existing
-- @use store/live
-- @use task/load_task
-- @use store/owner
-- @use task/refuse

-- untimely checks what depends on the time of the call.
local function untimely(tx, f, deadline, start)
  if deadline and deadline > 9007199254740992 then
    return "timeout_ms", "ends after 2^53 ms"
  elseif start and start > 9007199254740992 then
    return "delay_ms", "ends after 2^53 ms"
  elseif deadline and deadline < tx.at then
    return "deadline_at", "is in the past; it is " .. tx.now .. " now"
  elseif deadline and start and start > deadline then
    return "available_at", "is after the deadline: start earlier, or give it more time"
  end
  local window = tonumber(f.idempotency_window_ms)
  if window and deadline and tx.at + window < deadline then
    return "idempotency_window_ms", "ends before the deadline, so that a second task could start beside the first: make it longer"
  end
end

-- times returns nil and when a task of a shape must end and can start, for an owner. If these do not fit together,
-- it returns an answer.
local function times(tx, shape, parent)
  local f = shape.fields
  local bound = parent and (parent["until"] or parent.deadline_at)
  if f.budget_percent and not bound then
    return {"INVALID", "budget_percent", "needs an owner with a deadline: give the owner one"}
  end
  local deadline = f.timeout_ms and tx.at + f.timeout_ms or tonumber(f.deadline_at)
  if f.budget_percent then -- of what the owner has left
    local share = tx.at + math.floor((bound - tx.at) * f.budget_percent / 100)
    deadline = deadline and math.min(deadline, share) or share
  end
  local start = f.delay_ms and tx.at + f.delay_ms or tonumber(f.available_at)
  local field, why = untimely(tx, f, deadline, start)
  if field then
    return {"INVALID", field, why}
  end
  -- Of equal instants the owner's counts, so that the result does not depend on which task is read first.
  bound = not (deadline and bound and deadline < tonumber(bound)) and bound or nil
  if shape.warns and not bound and not deadline then
    return {"INVALID", "warn_percent", "needs a deadline: give the task a timeout"}
  end
  return nil, {deadline = deadline, start = start, bound = bound, until_of = bound and (parent.until_of or parent.id), of = parent}
end

-- shared returns the draft of a shape for an owner, or an answer. It is made once for all tasks that share it.
local function shared(tx, shape, parent)
  local drafts = own(tx, "drafts")
  local of = drafts[shape]
  if not of then
    of = {}
    drafts[shape] = of
  end
  local known = of[parent or shape]
  if not known then
    known = {}
    local answer, plan = times(tx, shape, parent)
    known.answer, known.draft = answer, plan and draft(tx, shape.fields, plan)
    of[parent or shape] = known
  end
  return known.answer, known.draft
end

-- simple returns the draft of a root task, if an earlier task has made the draft and this task needs no other check.
local function simple(tx, task)
  local of = tx.drafts[task.shape]
  local known = of and of[task.shape]
  local root = task.id
  if known and not task.shape.fields.idempotency_key and not tx.some_exist and not tx.tasks[root] and
    #task.payload <= record.inline and string.match(root, "^(%d+)%-%w[%w_-]*$") == tx.key.partition and #root <= 512 then
    return known.draft
  end
end

local function plan(tx, task)
  local shape = task.shape
  local d = simple(tx, task)
  if d then
    return nil, d
  end
  if not shape.checked then
    check_shape(tx, shape, owner(task.id))
  end
  local field, why = id(tx, task.id)
  if field or shape.bad_name then
    return field and {"INVALID", field, why} or shape.bad_name
  end
  if not owner(task.id) and not shape.fields.retry_of and string.find(shape.fields.kind, "^flow/") then
    return {"INVALID", "kind", "is for nodes of flows, which their runs enqueue: use another kind"}
  end
  local answer = find_existing(tx, task)
  if answer or shape.bad_field then
    return answer or shape.bad_field
  end
  local above, parent = owner(task.id), nil
  if above then
    if shape.fields.idempotency_key then
      return {"INVALID", "idempotency_key", "cannot be given for a child: its id is its idempotency key"}
    end
    tx.on = above
    parent, why = load_task(tx, above)
    tx.on = nil
    if not parent then
      return {"BROKEN", task.id, why}
    elseif not live(parent) then
      if parent.status then
        refuse(tx, parent, "enqueue", "", "")
      end
      return {"OWNER", parent.id, parent.status or ""}
    end
  end
  if #task.payload > record.inline and not task.replaces and redis.call("EXISTS", tx.key.payload .. task.id) == 1 then
    return {"BROKEN", task.id, "the key of its payload already exists"}
  end
  answer, d = shared(tx, shape, parent)
  return answer, d, parent
end
