-- curfew_settle: reports how an attempt ended.
--
-- KEYS[1]  root of a partition
-- ARGV[1]  worker
-- ARGV[2]  id
-- ARGV[3]  epoch, as curfew_fetch gave it
-- ARGV[4…] result   the attempt succeeded, with these bytes
--          error    it failed, with this text
--          release  it is given back, which counts as no attempt; any value. Give one of these three
--          retry    of error: yes or no; absent: yes. With no the task fails without a retry
--          class    of error, in place of retry: error, failed, timeout (of the attempt), deadline (of the task);
--                   of release: no_handler if the worker cannot run this kind, so that its time in line continues
--          delay    of error and release: how long until the next attempt; absent: its back-off
--          code     of error: an exit code
--          verdict  of error: the result of its retry expression
--          call     identifies this report: a repeat gets the same reply; absent: derived from the epoch
--
-- Returns  {"id", id, "status", status}: its status now. PENDING: it will run again
-- Ends     COMPLETED, FAILED, CANCELLED
-- Flags    allow-oom        a full Redis must still drain
--
-- @use call/settle
-- @use check/values: whole
-- @use named/options: clip, id_of, options, reject, root_of, span_of, word_of, worker_of
-- @use named/reply: plain, reply
local parameters = {result = true, error = true, release = true, retry = true, class = true, delay = true, delay_ms = true, code = true,
  verdict = true, call = true}
local verbs = {result = "complete", error = "fail", release = "release"}

-- details maps a detail to the outcomes that it can be given with.
local details = {retry = {error = true}, class = {error = true, release = true}, code = {error = true}, verdict = {error = true},
  delay = {error = true, release = true}, delay_ms = {error = true, release = true}}

local function choose_outcome(args)
  local outcome, n = nil, 0
  for name in pairs(verbs) do
    if args[name] then
      outcome, n = name, n + 1
    end
  end
  if n ~= 1 then
    reject("INVALID", "give result, error or release, one of them")
  end
  for name, outcomes in pairs(details) do
    if args[name] and not outcomes[outcome] then
      reject("INVALID", name .. " means nothing for " .. outcome)
    end
  end
  return outcome
end

local function error_class(args)
  if args.retry and args.class then
    reject("INVALID", "give retry or class, and not both")
  elseif args.retry and args.retry ~= "yes" and args.retry ~= "no" then
    reject("INVALID", 'retry "' .. clip(args.retry) .. '" must be yes or no')
  end
  return args.class or args.retry == "no" and "failed" or "error"
end

-- outcome_of returns the words of an outcome, as task/report.lua reads them from the verb on.
local function outcome_of(args)
  local outcome = choose_outcome(args)
  local verb, delay = verbs[outcome], (args.delay or args.delay_ms) and span_of(args, "delay", "", 0, 4503599627370496) or ""
  if outcome == "result" then
    return verb, args.result
  elseif outcome == "error" then
    return verb, args.error, error_class(args), args.code or "", delay, args.verdict or ""
  end
  if args.class and args.class ~= "no_handler" then
    reject("INVALID", 'class "' .. clip(args.class) .. '" of release must be no_handler')
  end
  return verb, "", args.class or "", "", delay, ""
end

local function settle_named(keys, argv)
  local root, worker = root_of(keys), worker_of(argv, "worker")
  local id, epoch = id_of(argv[2], root), argv[3]
  if not whole(epoch) then
    reject("INVALID", 'the epoch "' .. clip(epoch or "") .. '" must be the number that curfew_fetch gave')
  end
  local args = options.read(argv, 4, parameters)
  local verdict = plain(settle(keys, {worker, word_of(args, "call", "settle-" .. epoch), "1", id, epoch, outcome_of(args)}))[2][1]
  if type(verdict) == "string" then
    return {"id", id, "status", verdict}
  elseif verdict[1] == "LOST" then
    reject("LOST", id .. " no longer belongs to this claim: it is " .. verdict[2] .. ". Drop the result")
  elseif verdict[1] == "MISSING" then
    reject("MISSING", "there is no task " .. id .. ". Drop the result")
  elseif verdict[1] == "BROKEN" then
    reject("BROKEN", id .. ": " .. verdict[2])
  end
  reject("INVALID", verdict[2] .. " " .. verdict[3])
end

local function curfew_settle(keys, argv)
  return reply(settle_named, keys, argv)
end
