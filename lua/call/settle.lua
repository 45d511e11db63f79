-- settle: a worker reports how attempts ended. It can take its next tasks in the same call.
--
-- ARGV[1]  worker
-- ARGV[2]  call: identifies this report; a repeat gets the first answer
-- ARGV[3]  number of outcomes, up to 500; each as in task/report.lua
-- then     the arguments of fetch from seq on; absent, or n = 0: no tasks are taken, and look is 1000. Outcomes
--          and tasks taken are at most 600 together. Results, errors and the tasks taken have 4 MiB together, or
--          it is one task
--
-- Returns  {now, {verdict, …}, {look, claim, …}, error, …}; look, claims and errors as fetch
--          returns them; a verdict is one of
--   status                   accepted: the status that the task has now. A task that is being cancelled is
--                            CANCELLED, whatever the outcome
--   {"LOST", status}         the task no longer belongs to this claim; nothing changed
--   {"MISSING"}              there is no such task
--   {"BROKEN", why}          its record is damaged
--   {"INVALID", field, why}  nothing changed, and the task stays with its worker; field is result if the result is not of the
--                            task's result_type
-- Ends     COMPLETED, FAILED, CANCELLED
-- Flags    allow-oom        a full Redis must still drain
--
-- @use check/values: names
-- @use queue/queue: look_again
-- @use store/record
-- @use store/state: owner
-- @use store/tell
-- @use store/tx: begin, read_root
-- @use task/claim: claim, read_ask
-- @use task/report: read_outcomes, report
-- @use unit/unit

local function report_all(tx, outcomes, worker, call)
  local ids, verdicts = {}, {}
  for _, o in ipairs(outcomes) do
    ids[#ids + 1] = o.id
    ids[#ids + 1] = owner(o.id)
  end
  record.load(tx, ids)
  for n, o in ipairs(outcomes) do
    tx.on = o.id
    verdicts[n] = report(tx, o, worker, call)
  end
  return verdicts
end

local function settle(keys, argv)
  local worker, call = names.word("worker", argv[1]), names.word("call", argv[2])
  local outcomes, rest = read_outcomes(argv, 3)
  local ask = argv[rest] and read_ask(argv, rest, worker)
  local tx = read_root(begin(keys[1]))
  local verdicts, claims, look = {}, {}, 1000
  if outcomes[1] then
    verdicts = unit(tx, report_all, outcomes, worker, call)
  end
  if ask and ask.n > 0 then
    -- Ends and claims together are at most 600: Redis does nothing else meanwhile.
    ask.n, ask.carried = math.min(ask.n, 600 - #outcomes), 0
    for _, o in ipairs(outcomes) do
      ask.carried = ask.carried + #o.note
    end
    claims = unit(tx, claim, ask)
    look = look_again(tx, claims)
  end
  return tell.reply(tx, {tx.at, verdicts, {look, unpack(claims)}, unpack(tx.reply.failed)})
end
