-- refusal returns why a task was not created, from the answer of call/enqueue.lua; nil if the task exists.
local refusals = {
  INVALID = function(answer)
    return answer[2] .. " " .. answer[3]
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

local function refusal(answer)
  local why = refusals[answer[1]]
  return why and why(answer)
end
