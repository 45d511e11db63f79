-- answer_wait answers at once: the wait is over before it has begun. An earlier attempt may have stored limits of
-- members. They are removed, so that the next wait does not use them.
--
-- @use task/by_priority
-- @use agent/cancel_member
-- @use wait/forget_wait
-- @use wait/journal
-- @use agent/verdict
local function answer_wait(tx, s, c, task, fired)
  local w, losers = s.wait, {}
  for _, m in ipairs(s.members) do
    if w.on_losers == "cancel" and not m.counted then
      losers[#losers + 1] = m
    end
  end
  by_priority(losers)
  for _, m in ipairs(losers) do
    cancel_member(tx, m.id, "not_needed")
  end
  local settled = c.recounted and {} or redis.call("LRANGE", tx.key.settled .. s.id, 0, -1)
  for _, name in ipairs(c.names) do
    settled[#settled + 1] = name
  end
  local text = verdict({label = w.label, digest = w.digest, members = c.members}, fired.how, fired.winner, tx.at, settled)
  journal.drop_patience(tx, s.id)
  if task.waiting then
    forget_wait(tx, task)
  end
  journal.add(tx, task, {{tonumber(w.entry), text}})
  return {"READY", text}
end
