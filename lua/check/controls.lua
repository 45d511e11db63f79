-- controls checks the controls of a queue. It returns the field that is wrong and why, or nil.
--
-- @use check/whole
local known = {paused = true, max_running = true, rate = true, per_ms = true, burst = true}

local function controls(asked)
  for name, value in pairs(asked) do
    if not known[name] then
      return string.sub(name, 1, 128), "is not a control of a queue"
    elseif value ~= "" and not whole(value, 1) then
      return name, "must be a whole number of at least 1, or empty to remove the control"
    end
  end
  for _, name in ipairs({"per_ms", "burst"}) do
    if (asked.rate == nil) ~= (asked[name] == nil) or (asked.rate == "") ~= (asked[name] == "") then
      return "rate", "needs per_ms and burst: give all three, or none"
    end
  end
end
