-- settle: a worker reports how attempts ended, and may take its next tasks in
-- the same trip.
--
-- KEYS[1]  root of the partition
-- ARGV[1]  worker
-- ARGV[2]  call: kept over repeats of this call, so that a repeat is known
-- ARGV[3]  how many outcomes; each has eight values:
--            id, epoch    the claim, as fetch gave it
--            verb         complete, fail or release
--            note         result of complete, error of fail, opaque
--            class        of fail: error, failed (never retried) or timeout (the attempt's limit)
--            code         of fail: exit code, or ""
--            delay        ms before it may be fetched again, for fail and release; "": the task's back-off
--            verdict      of the task's retry expression: "retry" or "fail"; "fail: " and why if it
--                         could not be asked; "" if the task has none
-- then     as fetch from its seq on; absent or n = 0: take nothing
--
-- Returns  {now, {verdict, …}, {more, claim, …}, error, …}; error as fetch tells; a verdict is one of
--   {"OK", status}     done: what the task is now; also when this call had done it before.
--                      One that is being cancelled is CANCELLED, whatever the outcome
--   {"LOST", status}   the task is no longer this claim's, and nothing changed
--   {"MISSING"}        no such task
--   {"BROKEN", why}    its record cannot be worked with
--   {"INVALID", verb}  no such verb
--   {"INVALID", field, why}  of a fail or release, and nothing changed
-- Ends     COMPLETED, FAILED, CANCELLED
-- Flags    allow-oom        a full Redis must still drain
--
-- @include keys
-- @include now
-- @include overdue
-- @include finish
-- @include requeue
-- @include attempt_failed
-- @include cancelled
-- @include refuse
-- @include emit
-- @include guard
-- @include claim
-- @include flush

local k, at = keys(KEYS[1]), now()
local worker, call = ARGV[1], ARGV[2]

local verbs = {}

function verbs.complete(task, o)
  finish(k, task, {status = "COMPLETED", result = o.note, settled = true, fields = {"call", call}}, at)
end

function verbs.fail(task, o)
  attempt_failed(k, task, at, {class = o.class, since = at, error = o.note, code = o.code, delay = tonumber(o.delay),
    verdict = o.verdict, call = call})
end

function verbs.release(task, o)
  emit(k, "all", "task_released", task, at)
  requeue(k, task, at, at + (tonumber(o.delay) or 0), true, {"requeued_by", call})
end

-- unsound names a value that a worker cannot mean, and why.
local function unsound(o)
  if o.verb == "complete" then
    return nil
  elseif o.delay ~= "" and (not string.find(o.delay, "^%d+$") or #o.delay > 15) then
    return "delay", "must be a whole number of ms, or empty"
  elseif o.verb == "fail" and o.class ~= "error" and o.class ~= "failed" and o.class ~= "timeout" then
    return "class", "must be error, failed or timeout"
  elseif o.code ~= "" and (not string.find(o.code, "^-?%d+$") or #o.code > 20) then
    return "code", "must be a whole number, or empty"
  end
end

local function report(o)
  if not verbs[o.verb] then
    return {"INVALID", o.verb}
  end
  local field, why = unsound(o)
  if field then
    return {"INVALID", field, why}
  end
  local task = overdue(k, o.id, at)
  if not task.status then
    return {"MISSING"}
  end
  -- A repeat. What was given back or retried may have been claimed anew by now, by
  -- the very trip that reported it, and may have ended since: so the epoch says
  -- nothing here, and the call that put it back in line is kept beside the last one.
  if task.requeued_by == call then
    return {"OK", "PENDING"}
  elseif task.call == call then
    return {"OK", task.status}
  end
  -- A claim whose lease was lost may settle until somebody took the task.
  -- The epoch alone would do, if Redis never forgot: a failover may lose a claim, and
  -- the next one then gets the same epoch.
  local holds = task.epoch == o.epoch and
    (task.status == "RUNNING" and task.worker == worker or task.status == "PENDING" and task.lost_by == worker)
  if not holds then
    refuse(k, task, at, o.verb, o.epoch, worker)
    return {"LOST", task.status}
  end
  if task.cancel_at then
    local over = cancelled(task.cancel_reason, {"call", call})
    over.settled = true
    finish(k, task, over, at)
  else
    verbs[o.verb](task, o)
  end
  return {"OK", task.status}
end

local verdicts, pos, reported = {}, 4, tonumber(ARGV[3])
if not reported or reported > 500 then
  error("settle: " .. tostring(ARGV[3]) .. " is no count of outcomes, 500 at the most", 0)
end
for n = 1, reported do
  local o = {id = ARGV[pos], epoch = ARGV[pos + 1], verb = ARGV[pos + 2], note = ARGV[pos + 3],
    class = ARGV[pos + 4], code = ARGV[pos + 5], delay = ARGV[pos + 6], verdict = ARGV[pos + 7]}
  pos = pos + 8
  local verdict, why = guard(k, o.id, at, report, o)
  if not verdict then
    redis.call("ZREM", k.claims .. worker, o.id)
  end
  verdicts[n] = verdict or {"BROKEN", why}
end
local claims, errors = {0}, {flush(k, at)}
if ARGV[pos] and tonumber(ARGV[pos + 1]) > 0 then
  -- Ends and claims together are 600 at the most: Redis does nothing else meanwhile.
  local ask = {worker = worker, seq = tonumber(ARGV[pos]), n = math.min(tonumber(ARGV[pos + 1]), 600 - reported),
    lease = tonumber(ARGV[pos + 2]), quotas = {}}
  for i = pos + 3, #ARGV do
    ask.quotas[#ask.quotas + 1] = ARGV[i]
  end
  local more
  claims, more = claim(k, ask, at)
  for _, why in ipairs(more) do
    errors[#errors + 1] = why
  end
  errors[#errors + 1] = flush(k, at)
end
return {at, verdicts, claims, unpack(errors)}
