-- read_outcomes reads the outcomes of a report from argument i on: their number, then for each
--
--   id, epoch  the claim, as fetch returned it
--   verb       complete, fail or release
--   note       the result of complete, the error of fail, or why release gives it back (up to 1024 bytes of it are kept), opaque
--
-- and after these four, of fail and release alone:
--
--   class      of fail: error, failed (do not retry), timeout (the attempt's limit) or deadline (its worker
--              stopped it in the grace before the task's own deadline)
--              of release: no_handler if the worker cannot run its kind: its time in line continues, and the delay is
--              10 ms, twice as long each further time in a row, and at most what is given (1 s)
--   code       of fail: exit code, or ""
--   delay      ms before the task can be fetched again; "": the task's back-off
--   verdict    of the task's retry expression: "retry" or "fail"; "fail: " and why it could not be
--              evaluated; "" if the task has none
--
-- Returns the outcomes, and the position of the next argument. It raises if the arguments are not such a list.
--
-- @use check/number
-- @use task/check_outcome
local verbs = {complete = 4, fail = 8, release = 8}

local function read_outcomes(argv, i)
  local n = number(argv, i, 4, "outcomes")
  if n > 500 then
    error("argument " .. i .. " must be the number of outcomes, at most 500", 0)
  end
  local outcomes, next = {}, i + 1
  for j = 1, n do
    local o = {id = argv[next], epoch = argv[next + 1], verb = argv[next + 2], note = argv[next + 3]}
    local size = verbs[o.verb]
    if not size or next + size - 1 > #argv then -- the position of the next outcome is unknown
      error("argument " .. next .. " must begin an outcome: id, epoch, complete and result; or id, epoch, fail or release," ..
        " note, class, code, delay and verdict", 0)
    end
    if size == 8 then
      o.class, o.code, o.delay, o.verdict = argv[next + 4], argv[next + 5], argv[next + 6], argv[next + 7]
      o.field, o.why = check_outcome(o)
    end
    outcomes[j], next = o, next + size
  end
  return outcomes, next
end
