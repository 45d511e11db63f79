-- What a task that a caller wants to make comes to: a new task, one that exists, or a refusal.
--
-- @use check/fields: fields, nones, pairs_of_fields
-- @use check/values: names
-- @use queue/queue: count, held_sets
-- @use store/events: emit, escape
-- @use store/index
-- @use store/record
-- @use store/state: live, owner
-- @use store/try: attempt
-- @use store/tx: memo
-- @use task/body: payload
-- @use task/create: defaults, draft, fill_backoff
-- @use task/finish: load_task
-- @use task/identity: idempotency, left_behind

-- refuse records an event: a call changed nothing because of the state of its task.
--
--   op      complete, fail, release, resolve, reject, cancel, suspend, remember, signal or enqueue (of a child)
--   epoch, worker   of the caller; "" if it has none
local function refuse(tx, task, op, epoch, worker)
  if tx.root.level ~= "all" then
    return
  end
  local reason = "not_held"
  if not live(task) then
    reason = task.timed_out and "late" or task.status == "CANCELLED" and "cancelled" or "ended"
  elseif epoch ~= "" and epoch ~= (task.epoch or "0") then
    reason = "stale"
  end
  local caller = {id = task.id, kind = task.kind, queue = task.queue, created_at = task.created_at, started_at = task.started_at,
    retries = task.retries, node = task.node, epoch = epoch ~= "" and escape(epoch) or nil, worker = worker ~= "" and escape(worker) or nil}
  emit(tx, "all", "rejected", caller, "op=" .. op .. " reason=" .. reason .. " status=" .. task.status ..
    " task_epoch=" .. (task.epoch or "0") .. " task_worker=" .. (task.worker or ""))
end

-- by_key returns the answer if the task's idempotency key belongs to another task. If a scope ends the key with that
-- task, and the task ends now, the key is free.
local function by_key(tx, task, key)
  local id, digest, why = idempotency.find(tx, key)
  if not id then
    return why and {"BROKEN", task.id, why}
  end
  tx.on = id
  local first
  first, why = load_task(tx, id)
  tx.on = nil
  if not first then
    return {"BROKEN", task.id, why}
  elseif not idempotency.find(tx, key) then
    return nil
  elseif digest ~= idempotency.digest(task.shape.fields.kind, task.payload) then
    return {"CONFLICT", id}
  end
  return {id == task.id and "OK" or "KNOWN", id, first.deadline_at or ""}
end

local function by_id(tx, task)
  local old, why = record.get(tx, task.id)
  if not old then
    return {"BROKEN", task.id, why}
  end
  task.replaces = left_behind(tx, old) and old or nil
  if not old.status or task.replaces then
    return nil
  end
  local f, stored = task.shape.fields, payload(tx, old)
  if not stored then
    return {"BROKEN", task.id, "its payload is lost"}
  elseif old.kind == f.kind and old.queue == f.queue and stored == task.payload then
    local mine = not f.enqueued_by or f.enqueued_by == old.enqueued_by
    return {mine and "OK" or "KNOWN", task.id, old.deadline_at or ""}
  end
  return {"TAKEN", task.id}
end

-- find_existing returns the answer for a task that exists already, or nil for a new one.
local function find_existing(tx, task)
  local answer = (tx.records.some_exist or tx.records.tasks[task.id]) and by_id(tx, task)
  local key = task.shape.fields.idempotency_key
  if answer or not key or string.find(task.id, ".", 1, true) then
    return answer or nil
  end
  return by_key(tx, task, key) or nil
end

-- of_roles are the defaults of promises and timers, which no worker runs.
local of_roles = {timeout_ms = true, result_type = true, retention_ms = true, hook_success = true, hook_failure = true, hook_timeout = true, hook_cancel = true}

-- apply_defaults sets fields that the producer did not give to the defaults of the kind. A field of the producer
-- comes before the default of the kind. default_timeout_ms, which the owner gives, comes last. A kind's timeout of none counts as
-- the producer's.
--
--   f         the fields of a task; they are changed
--   none      whether the value of any field is "none"
--   of_kind   the defaults of the kind (task/create.lua)
--
-- Returns whether the timeout is a default
local function apply_defaults(f, none, of_kind)
  local own_timeout, own_expression = f.timeout_ms or f.deadline_at, f.retry_expression and not f.on_timeout
  if not own_timeout and of_kind.timeout_ms == "none" then
    f.timeout_ms, own_timeout, none = "none", true, true
  end
  for name, value in pairs(of_kind) do
    if f[name] == nil and (not f.role or of_roles[name]) then
      f[name] = value
    end
  end
  fill_backoff(f)
  if own_expression then
    f.on_timeout = nil -- that of the kind is of another expression
  end
  if f.deadline_at then
    f.timeout_ms = nil
  end
  if none then
    for _, name in ipairs(nones) do
      if f[name] == "none" then
        f[name] = nil
      end
    end
  end
  if not own_timeout then
    f.timeout_ms = f.timeout_ms or f.default_timeout_ms
  end
  if (f.on_timeout or f.retry_expression) and tonumber(f.max_retries or 0) == 0 then
    f.on_timeout, f.retry_expression = nil, nil
  end
  return not own_timeout
end

local for_themselves = {sleep = true, promise = true, signal = true, ["flow/sleep"] = true, ["flow/wait"] = true}

-- check_shape checks a shape: the fields that several tasks of one call share. It records what is wrong with the names
-- (bad_name) and with the other fields (bad_field). If nothing is, it applies the defaults of the kind.
--
--   child  whether the tasks have an owner
--
-- The promises and timers that agents and flows make for themselves take no defaults: users can have kinds with these names.
local function check_shape(tx, shape, child)
  local f = shape.fields
  shape.checked = true
  local field, why = names.kind(f.kind)
  if not field then
    field, why = names.queue(f.queue)
  end
  if field then
    shape.bad_name = {"INVALID", field, why}
    return
  end
  field, why = shape.field, shape.why
  if not field then
    field, why = fields(f)
  end
  local of_kind = child and f.role and for_themselves[f.kind] and {} or defaults(tx, f.kind)
  if not field then
    field, why = pairs_of_fields(f, of_kind)
  end
  if field then
    shape.bad_field = {"INVALID", string.sub(field, 1, 128), why} -- repeated in the answer of each task
    return
  end
  shape.warns = f.warn_percent
  shape.default_timeout = apply_defaults(f, shape.none, of_kind)
  if f.retry_expression and f.attempt_timeout_ms and not f.on_timeout then
    shape.bad_field = {"INVALID", "on_timeout", "must be fail or retry beside retry_expression and an attempt_timeout:" ..
      " no worker is there to evaluate the expression when an attempt takes too long"}
  end
end

-- depth returns how many names of children an id of this partition ends with; nil if it is not an id.
local function depth(tx, text)
  if string.match(text, "^(%d+)%-%w[%w._!-]*$") ~= tx.key.partition or string.find(text, "%.[^%w]") or string.sub(text, -1) == "." then
    return nil
  end
  return select(2, string.gsub(text, "%.", ""))
end

-- id checks the id of a new task: the partition, a dash, the letters and digits of a root, then up to 16 names of
-- children, each behind a dot. Ids of hooks are not checked here: the ended task makes them. It returns "id" and why,
-- or nil.
local function id(tx, text)
  if #text > 512 then
    return "id", "has " .. #text .. " bytes, the limit is 512" ..
      (owner(text) and ": it begins with the id of its owner, so give the child, or a task above it, a shorter name" or "")
  elseif string.match(text, "^(%d+)%-%w[%w_-]*$") == tx.key.partition then
    return nil -- most tasks are roots
  end
  local parent = owner(text)
  local above = parent and depth(tx, parent)
  if above and above < 16 and string.find(text, "^%w[%w_-]*$", #parent + 2) then
    return nil
  elseif depth(tx, text) == 17 then
    return "id", "is nested deeper than 16: create it as a child of a task higher up"
  end
  return "id", "must be the partition, " .. tx.key.partition .. ", a dash, letters and digits; then for each child a dot" ..
    " and a name of A-Z a-z 0-9 _ - that begins with a letter or digit"
end

-- source returns where the deadline of a task comes from, for errors.
local function source(shape)
  local f = shape.fields
  if f.budget_percent then
    return "its budget_percent of the owner's time"
  elseif f.deadline_at then
    return "its deadline_at"
  elseif shape.default_timeout then
    return "the default timeout of " .. f.timeout_ms .. " ms, which counts from its start"
  end
  return "its timeout of " .. f.timeout_ms .. " ms, which counts from now"
end

-- untimely checks what depends on the time of the call.
local function untimely(tx, shape, deadline, start)
  local f = shape.fields
  if deadline and deadline > 9007199254740992 then
    return "timeout_ms", "ends after 2^53 ms"
  elseif start and start > 9007199254740992 then
    return "delay_ms", "ends after 2^53 ms"
  elseif deadline and deadline < tx.at then
    return "deadline_at", "is in the past; it is " .. tx.now .. " now"
  elseif deadline and start and start > deadline then
    return f.delay_ms and "delay_ms" or "available_at", "is after the deadline (" .. source(shape) ..
      "): start earlier, or give it more time"
  end
  local window = tonumber(f.idempotency_window_ms)
  if window and deadline and tx.at + window < deadline then
    return "idempotency_window_ms", "ends before the deadline (" .. source(shape) ..
      "), so that a second task could start beside the first: make it longer"
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
  local start = f.delay_ms and tx.at + f.delay_ms or tonumber(f.available_at)
  -- The producer of a task that starts in an hour may not know the default, which is for the time from then on.
  local from = shape.default_timeout and start and start > tx.at and start or tx.at
  local deadline = f.timeout_ms and from + f.timeout_ms or tonumber(f.deadline_at)
  if f.budget_percent then -- of what the owner has left
    local share = tx.at + math.floor((bound - tx.at) * f.budget_percent / 100)
    deadline = deadline and math.min(deadline, share) or share
  end
  local field, why = untimely(tx, shape, deadline, start)
  if field then
    return {"INVALID", field, why}
  end
  if tx.root.default_timeout and not deadline and shape.default_timeout and not parent and not f.role then
    -- After the checks, so that nothing is refused because an operator has set a default.
    local default = tonumber(tx.root.default_timeout) -- or "none"
    deadline = default and math.min(from + default, 9007199254740992)
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
  local drafts = memo(tx, shape)
  local known = drafts[parent or shape]
  if not known then
    local answer, plan = times(tx, shape, parent)
    known = {answer = answer, draft = plan and draft(tx, shape.fields, plan)}
    drafts[parent or shape] = known
  end
  return known.answer, known.draft
end

-- simple returns the draft of a root task, if an earlier task has made the draft and this task needs no other check.
local function simple(tx, task)
  local shape, root = task.shape, task.id
  local drafts = tx.memo and tx.memo[shape]
  local known = drafts and drafts[shape]
  if known and not shape.fields.idempotency_key and not tx.records.some_exist and not tx.records.tasks[root] and
    #task.payload <= record.inline and string.match(root, "^(%d+)%-%w[%w_-]*$") == tx.key.partition and #root <= 512 then
    return known.draft
  end
end

-- count_held returns how many tasks of a queue are held.
local function count_held(tx, queue)
  local n = 0
  for _, set in ipairs(held_sets(tx)[queue] or {}) do
    n = n + (tonumber(attempt("ZCARD", tx.key.held .. set)) or 0)
  end
  return n
end

-- full returns the answer for a root task whose queue has no place left in line. It counts what is in line or held now, what this
-- call adds, and then what the call removes, which is rare. A task that gets in line later was accepted before: a delayed task, a
-- hook, a retry.
local function full(tx, f, d)
  if d.available_at or f.role then
    return nil
  end
  local queue, line, known = f.queue, tx.key.ready .. f.queue, memo(tx, "lines")
  local of = known[queue]
  if not of then
    of = {most = tonumber(redis.call("HGET", tx.key.queue .. queue, "max_length")), length = false}
    of.length = of.most and redis.call("ZCARD", line) + count_held(tx, queue)
    known[queue] = of
  end
  local added = of.most and tx.sets[line] and #tx.sets[line].new / 2 or 0
  if of.most and of.length + added >= of.most and of.length + added - index.removals(tx, line) >= of.most then
    count.add(tx, queue, "refused", 1)
    return {"FULL", queue, string.format("%d", of.most)}
  end
end

-- plan checks a task that a caller wants to make. If the task exists already or is refused, it returns an answer.
-- Otherwise it returns nil, its draft and its owner. It writes nothing for the task, but can end tasks that are late.
--
--   task  shape, id and payload (task/enqueue.lua)
local function plan(tx, task)
  local shape = task.shape
  local d = simple(tx, task)
  if d then
    return tx.root.controlled and full(tx, shape.fields, d), d
  end
  local f, above, parent = shape.fields, owner(task.id), nil
  if not shape.checked then
    check_shape(tx, shape, above)
  end
  local field, why = id(tx, task.id)
  if field or shape.bad_name then
    return field and {"INVALID", field, why} or shape.bad_name
  end
  if not above and not f.retry_of and string.find(f.kind, "^flow/") then
    return {"INVALID", "kind", "is for nodes of flows, which their runs enqueue: use another kind"}
  end
  local answer = find_existing(tx, task)
  if answer or shape.bad_field then
    return answer or shape.bad_field
  end
  if above then
    if f.idempotency_key then
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
  if tx.root.controlled and not answer and not above then
    answer = full(tx, f, d)
  end
  return answer, d, parent
end

-- look_for_existing checks whether any of a call's tasks exists already. Usually none does, and one EXISTS on all of
-- their keys shows that.
local function look_for_existing(tx, tasks)
  local spec, state, keys, ids = tx.key.spec, tx.key.state, {}, {}
  for n, task in ipairs(tasks) do
    local id = task.id
    ids[n], keys[2 * n - 1], keys[2 * n] = id, spec .. id, state .. id
  end
  tx.records.some_exist = keys[1] and redis.call("EXISTS", unpack(keys)) > 0
  if tx.records.some_exist then
    record.load(tx, ids)
  end
end
