-- refusal returns why a task was not created, from the answer of call/enqueue.lua; nil if the task exists.
--
--   told  the name that each field was given by (named/read_task.lua)
local refusals = {
  INVALID = function(answer, told)
    local field, why = answer[2], answer[3]
    local name = told[field] or field
    if name ~= field and not string.find(name, "_ms$") then
      why = string.gsub(why, "a whole number from (%d+) to 2%^53", "at least %1ms")
    end
    return name .. " " .. why
  end,
  TAKEN = function(answer)
    return "the id " .. answer[2] .. " belongs to another task: use a new id"
  end,
  CONFLICT = function(answer)
    return "the idempotency key belongs to " .. answer[2] .. ", which has another kind or payload"
  end,
  OWNER = function(answer)
    return "the owner " .. answer[2] .. (answer[3] == "" and " does not exist" or " has ended: it is " .. answer[3])
  end,
  BROKEN = function(answer)
    return answer[2] .. " cannot be created: " .. answer[3]
  end,
}

local function refusal(answer, told)
  local why = refusals[answer[1]]
  return why and why(answer, told)
end
