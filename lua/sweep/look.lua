-- look does what is due on one clock, oldest first, as one unit of work. A clock that cannot be read, and a
-- record that cannot be worked with, hold up nothing else.
--
--   s      of the whole sweep: batch, counts, errors, full (a clock had more than a batch)
--   clock  key, the bound of what is due, step, and most of it that one sweep takes
--
-- @use store/record
-- @use store/unit

local function step_all(tx, s, clock, due)
  local r = {counts = {}, errors = {}, full = #due == clock.most, batch = s.batch, chunk = s.batch, bytes = 0}
  if clock.tasks then
    record.load(tx, due)
  end
  for _, member in ipairs(due) do
    tx.on = member
    clock.step(tx, r, member, clock.key)
  end
  tx.on = nil
  return r
end

local function look(tx, s, clock)
  local due = redis.pcall("ZRANGEBYSCORE", clock.key, "-inf", clock.bound, "LIMIT", 0, string.format("%d", clock.most))
  if due.err then
    s.errors[#s.errors + 1] = clock.key .. ": " .. due.err
    return
  elseif #due == 0 then
    return
  end
  local r = unit(tx, step_all, s, clock, due)
  for what, n in pairs(r.counts) do
    s.counts[what] = (s.counts[what] or 0) + n
  end
  for _, why in ipairs(r.errors) do
    s.errors[#s.errors + 1] = why
  end
  s.full = s.full or r.full
end
