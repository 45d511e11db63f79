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
-- @use check/whole

local classes = {error = true, failed = true, timeout = true, deadline = true}
local verdicts = {[""] = true, retry = true, fail = true}

-- check_outcome returns the field of an outcome that is wrong, and why; nil if the outcome is well formed.
local function check_outcome(o)
  if o.delay ~= "" and not whole(o.delay, 0, 4503599627370496) then
    return "delay", "must be a whole number of ms, or empty"
  elseif o.verb == "fail" and not classes[o.class] then
    return "class", "must be error, failed, timeout or deadline"
  elseif o.code ~= "" and (not string.find(o.code, "^-?%d+$") or #o.code > 20) then
    return "code", "must be a whole number, or empty"
  elseif not verdicts[o.verdict] and (#o.verdict > 1024 or not string.find(o.verdict, "^fail: [^\n]+$")) then
    return "verdict", "must be empty, retry, fail, or fail: with a reason on one line of up to 1024 bytes"
  end
end

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
