-- consider looks at a task that somebody wants to make. It returns an answer if it is
-- not to be made: it is known, or refused. Otherwise it returns nil and a plan for
-- admit.lua. It changes nothing but for what is due.
--
-- @include invalid
-- @include known
-- @include fill
-- @include owner
-- @include overdue
-- @include live
-- @include refuse

-- untimely checks what only the clock can tell, for a task that is not known.
local function untimely(task, deadline, start, at)
  if deadline and deadline > 9007199254740992 then
    return "timeout_ms", "ends after 2^53 ms"
  elseif start and start > 9007199254740992 then
    return "delay_ms", "ends after 2^53 ms"
  elseif deadline and deadline < at then
    return "deadline_at", "is in the past; it is " .. string.format("%d", at) .. " now"
  elseif deadline and start and start > deadline then
    return "available_at", "the task may not start before its deadline: start earlier, or give it more time"
  end
  local window = tonumber(task.idempotency_window_ms)
  if window and deadline and at + window < deadline then
    return "idempotency_window_ms", "ends before the deadline, so that a second task could start beside the first: make it longer"
  end
end

-- parentage is the owner of a child. A list names one owner many times.
local function parentage(k, id, at)
  local parent = k.owners[id]
  if not parent then
    parent = overdue(k, id, at)
    k.owners[id] = parent
  end
  return parent
end

-- budgeted is the deadline of a child that gets a part of what its owner has left.
local function budgeted(task, deadline, bound, at)
  if not task.budget_percent then
    return deadline
  end
  local share = at + math.floor((bound - at) * task.budget_percent / 100)
  return deadline and math.min(deadline, share) or share
end

local function consider(k, task, at)
  local field, why = invalid(k, task)
  if field then
    return {"INVALID", field, why}
  end
  local answer = known(k, task, at)
  if answer then
    return answer
  end
  local warns = task.warn_percent
  fill(k, task)
  local parent, bound = owner(task.id), nil
  if parent then
    parent = parentage(k, parent, at)
    if not live(parent) then
      if parent.status then
        refuse(k, parent, at, "enqueue", "", "")
      end
      return {"OWNER", parent.id, parent.status or ""}
    end
    bound = parent["until"] or parent.deadline_at
  end
  if task.budget_percent and not bound then
    return {"INVALID", "budget_percent", "there is no deadline of an owner to share: give the owner one"}
  end
  local deadline = task.timeout_ms and at + task.timeout_ms or tonumber(task.deadline_at)
  deadline = budgeted(task, deadline, tonumber(bound), at)
  local start = task.delay_ms and at + task.delay_ms or tonumber(task.available_at)
  field, why = untimely(task, deadline, start, at)
  if field then
    return {"INVALID", field, why}
  end
  -- Of equal instants the owner's counts, whoever is looked at first.
  bound = not (deadline and bound and deadline < tonumber(bound)) and bound or nil
  if warns and not bound and not deadline then
    return {"INVALID", "warn_percent", "there is no deadline to warn of: give a timeout"}
  end
  return nil, {deadline = deadline, start = start, parent = parent, bound = bound}
end
