-- outcome_of reads the outcome of an attempt from the options of curfew_settle: result, error or release, and their
-- details.
--
-- Returns the words of task/report.lua, from the verb on
--
-- @use named/options: clip, reject, span_of
local verbs = {result = "complete", error = "fail", release = "release"}
local only_with = {retry = {error = true}, class = {error = true, release = true}, code = {error = true}, verdict = {error = true},
  delay = {error = true, release = true}, delay_ms = {error = true, release = true}}

-- which returns the outcome that was given.
local function which(given)
  local found, n = nil, 0
  for name in pairs(verbs) do
    if given[name] then
      found, n = name, n + 1
    end
  end
  if n ~= 1 then
    reject("INVALID", "give result, error or release, one of them")
  end
  for name, of in pairs(only_with) do
    if given[name] and not of[found] then
      reject("INVALID", name .. " means nothing for " .. found)
    end
  end
  return found
end

local function class_of(given)
  if given.retry and given.class then
    reject("INVALID", "give retry or class, and not both")
  elseif given.retry and given.retry ~= "yes" and given.retry ~= "no" then
    reject("INVALID", 'retry "' .. clip(given.retry) .. '" must be yes or no')
  end
  return given.class or given.retry == "no" and "failed" or "error"
end

local function outcome_of(given)
  local outcome = which(given)
  local delay = (given.delay or given.delay_ms) and span_of(given, "delay", "", 0, 4503599627370496) or ""
  if outcome == "result" then
    return "complete", given.result
  elseif outcome == "error" then
    return "fail", given.error, class_of(given), given.code or "", delay, given.verdict or ""
  end
  if given.class and given.class ~= "no_handler" then
    reject("INVALID", 'class "' .. clip(given.class) .. '" of release must be no_handler')
  end
  return "release", "", given.class or "", "", delay, ""
end
