-- suspend_agent decides on the wait that an agent requests: it begins the wait, answers it at once, or refuses it.
-- Every refusal comes before any change. It returns the answer (call/suspend.lua).
--
--   s  agent/read_suspension.lua
--
-- @use store/record
-- @use task/adopt
-- @use task/running_agent
-- @use agent/answer_wait
-- @use agent/decide_wait
-- @use agent/earlier_part
-- @use agent/find_settled
-- @use wait/forget_wait
-- @use agent/form_wait
-- @use wait/journal
-- @use agent/leave_out_known
-- @use agent/open_wait
-- @use agent/pick_members
-- @use agent/plan_children
-- @use agent/remembered_answer
-- @use agent/thresholds
-- @use agent/unfit_note
-- @use agent/write_note

-- repeated returns the answer to a repeat of the call that made the agent wait, or nil.
local function repeated(tx, s)
  local task = record.get(tx, s.id)
  if task and task.suspended_by == s.call then
    return {"WAITING"}
  end
end

-- prepare checks everything that can refuse the wait. It returns what is counted so far, the children to make, and
-- the members that have ended; or nil and an answer.
local function prepare(tx, s, task)
  local c, answer = earlier_part(tx, s, task)
  if not c then
    return nil, answer
  end
  leave_out_known(s, c.members)
  c.total = c.size + #s.members
  if c.total > tonumber(s.wait.most) then
    return nil, {"INVALID", "members", "are more than " .. s.wait.most .. ": wait for groups of them, or raise the limit"}
  end
  local field, why
  c.need_ok, c.most_bad, c.all, field, why = thresholds(s.wait.mode, c.total, tonumber(s.wait.need))
  if field and (c.last or field == "mode") then
    return nil, {"INVALID", field, why}
  end
  local children, settled
  children, answer = plan_children(tx, s)
  if children then
    settled, answer = find_settled(tx, s, children)
  end
  return not answer and c, answer or children, settled
end

-- enter makes the children and stores the note. It forgets an earlier wait. If the agent comes to the same wait again,
-- the limit and the members' own limits are kept.
local function enter(tx, s, c, children, task)
  local kept = journal.read(tx, s.id, "until")[1]
  local entry, until_at, digest = string.match(kept or "", "^(%d+) (%w+) (.*)$")
  local again = entry == s.wait.entry and digest == s.wait.digest
  c.ends = again and tonumber(until_at) or nil
  redis.call("ZCARD", tx.key.patience .. s.id) -- these raise here, before anything is written, if a key is of the wrong type
  redis.call("LLEN", tx.key.settled .. s.id)
  redis.call("ZCARD", tx.key.pending .. s.id)
  redis.call("HLEN", tx.key.wait .. s.id)
  for _, child in ipairs(children) do
    adopt(tx, child.task, child.draft, task)
  end
  if s.wait.part == "1" then
    if task.waiting then
      forget_wait(tx, task)
    end
    if not again then
      c.patience_dropped = true
      journal.drop_patience(tx, s.id)
    end
  end
  write_note(tx, task, s.note)
  local names = {c.members ~= "" and c.members or nil}
  for _, m in ipairs(s.members) do
    names[#names + 1] = m.name
    c.longest = math.max(c.longest, m.span)
  end
  c.members = table.concat(names, " ")
end

local function suspend_agent(tx, s)
  local answer = repeated(tx, s)
  if answer then
    return answer
  end
  local task, refusal = running_agent(tx, s, "suspend")
  if not task then
    return refusal
  end
  if task.waiting and redis.call("HGET", tx.key.wait .. s.id, "call " .. s.wait.part) == s.call then
    return {"MORE"} -- a repeat
  end
  answer = remembered_answer(tx, s) or pick_members(s) or unfit_note(tx, s)
  if answer then
    return answer
  end
  local c, children, settled = prepare(tx, s, task)
  if not c then
    return children
  end
  enter(tx, s, c, children, task)
  local fired = {}
  fired.how, fired.winner = decide_wait(tx, s, settled, c)
  if fired.how and (s.wait.on_losers == "keep" or s.wait.of == "1" and c.total - c.settled <= 100) then
    return answer_wait(tx, s, c, task, fired)
  elseif not c.last then
    return form_wait(tx, s, c, task)
  end
  answer = open_wait(tx, s, c, task, fired)
  answer.fired = fired.how
  return answer
end
