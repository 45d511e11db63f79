-- signal: a client sends a payload to an agent, once per name. The signal is a promise, a child of the agent. The agent or
-- the client creates it, whichever is first, so an early signal is not lost. An agent that could not use the payload
-- requests another one with a promise of the same name and "__2", "__3", … behind it, which the next signal settles.
--
-- ARGV[1]  call: identifies this call; a repeat has the same
-- ARGV[2]  agent
-- ARGV[3]  name of the signal
-- ARGV[4]  payload, opaque
--
-- Returns  {"OK"}                       the signal is sent. A repeat of the call gets this too, if the agent has not
--                                       requested the name more than 500 times since
--          {"ALREADY", status, note}    a signal of that name was sent before, or its promise has ended
--          {"TAKEN", id}                a task of another kind has the id
--          {"OWNER", id, status}        the agent has ended, or does not exist (status "")
--          {"INVALID", field, why}      nothing was stored
--          {"BROKEN", why}              a record that the call needs cannot be read
-- Ends     COMPLETED; and tasks that it reads whose time was up
-- Flags    allow-oom        an agent waits for the signal
--
-- @use check/result_type
-- @use check/values: names
-- @use store/state: live
-- @use store/tell: answer
-- @use store/try: reason, refused
-- @use store/tx: begin, memo, read_root
-- @use task/body
-- @use task/finish: finish, load_task
-- @use task/plan: refuse
-- @use task/signal_task
-- @use unit/unit

-- misfit returns why the agent that waits for the signal cannot use a payload, or nil. Agents of older versions set no result_type.
local function misfit(tx, task, note)
  local of = result_type.of(task) or task.headers == '{"content-type":"application/json"}' and "any"
  return live(task) and of and result_type.refuse(memo(tx, "result types"), of, note)
end

local function signal_one(tx, call, agent, id, note)
  local task, refusal = signal_task(tx, call, agent, id)
  if not task then
    return refusal
  end
  local why = misfit(tx, task, note)
  if why then
    return {"INVALID", "payload", why}
  elseif live(task) then
    finish(tx, task, {status = "COMPLETED", result = note, call = call})
    return {"OK"}
  elseif task.call == call then
    return {"OK"}
  elseif task.status ~= "COMPLETED" then
    tx.on = agent
    local above = load_task(tx, agent)
    if above and not live(above) then
      return {"OWNER", agent, above.status or ""}
    end
  end
  refuse(tx, task, "signal", "", "")
  return {"ALREADY", task.status, body(tx, task)}
end

local function signal(keys, argv)
  local call, agent, name, note = names.word("call", argv[1]), argv[2], argv[3], argv[4]
  if not note or #argv > 4 then
    error("signal takes a call, an agent, a name and a payload", 0)
  elseif #agent > 1024 then
    return {"INVALID", "agent", "has " .. #agent .. " bytes, the limit is 1024"}
  elseif #name > 128 or not string.find(name, "^%w[%w_-]*$") then
    return {"INVALID", "name", "must be 1 to 128 of A-Z a-z 0-9 _ - and begin with a letter or digit"}
  elseif string.find(name, "__%d+$") then
    return {"INVALID", "name", "must not end with __ and a number: such names are reserved"}
  end
  local tx = read_root(begin(keys[1]))
  local ok, reply = pcall(unit, tx, signal_one, call, agent, agent .. ".s-" .. name, note)
  if not ok and refused(reply) then
    error(reply, 0)
  elseif not ok then -- nothing was written
    return {"BROKEN", reason(reply)}
  end
  return answer(tx, reply)
end
