-- repair: rebuilds indexes, claims, idempotency keys and counters from the records.
--
-- ARGV[1]  dry: only describe the repairs; go: make them
-- ARGV[2…] kind, subject, where, …: up to 100 places that an audit has reported
--
--   task      id      keys whose entry may be wrong, separated by spaces (ready:mail, children, journal)
--   wait      agent   epoch and entry of its wait: the agent is given back
--   ends      agent   empty: ends that the agent has not received and its list lacks
--   queue     name    empty
--   worker    name    empty
--   kind      name    empty: its figures are listed
--   figure    kind    a field of its figures that is no count
--   controls  empty   empty: whether any queue has controls
--   key       key     empty: its end
--   waiting   queue   its counters of waiting agents, and the state in which they were counted (repair/repairs.lua)
--   running   empty   empty, or "go on": running tasks are counted again, for all queues
--
-- Each place is checked again before it is changed, so other programs need not stop. A repeat changes nothing more. No task
-- ends, because a reaper ends tasks whose time is up.
--
-- Returns  {more, {"OK", does, …} or {"LEFT", why, does, …}, …}. more is 1 if a count of running tasks goes on.
--          After a MiB of payloads and journals the reply ends: send the others again
-- Ends     CANCELLED: an agent that was to stop
-- Flags    allow-oom        a full Redis can be repaired
--
-- @use repair/repairs
-- @use store/tell: answer
-- @use store/tx: begin, read_root
-- @use unit/unit

local function repair_all(tx, argv)
  local answers, s = {0}, {size = 0, listed = {}}
  for i = 2, #argv, 3 do
    if s.size > 1048576 then
      break
    end
    local r, fault = repairs[argv[i]](tx, s, argv[i + 1], argv[i + 2])
    answers[#answers + 1] = fault and {"LEFT", fault, unpack(r or {})} or {"OK", unpack(r)}
  end
  return answers
end

local function repair(keys, argv)
  local dry = argv[1] == "dry"
  if not dry and argv[1] ~= "go" or #argv > 301 or #argv % 3 ~= 1 then
    error("repair takes dry or go, then what, subject and where of up to 100 places", 0)
  end
  for i = 2, #argv, 3 do
    if math.max(#argv[i + 1], #argv[i + 2]) > 16384 then
      error("arguments " .. i + 1 .. " and " .. i + 2 .. " have more than 16384 bytes", 0)
    elseif not repairs[argv[i]] then
      error("argument " .. i .. " must be task, wait, ends, queue, worker, kind, figure, controls, key, waiting or running", 0)
    end
  end
  local tx = read_root(begin(keys[1]))
  if dry then
    return repair_all(tx, argv)
  end
  local answers = unit(tx, repair_all, argv)
  answers[1] = tx.root.recounted and 1 or 0
  return answer(tx, answers)
end
