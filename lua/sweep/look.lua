-- look does what is due on one clock, oldest first, as one unit of work. A clock or a record that cannot be read
-- holds up nothing else.
--
-- If deciding on a task raises an error, the unit ends with that task. The tasks behind it are units of their own,
-- small ones at first. So each task is decided a few times at the most, however many raise. If a tenth of them raises,
-- a sweep takes twice the time.
--
--   s      of the whole sweep: batch, counts, errors, full (a clock had a full batch)
--   clock  key, bound (the latest score that is due), step, and most (how many entries one sweep takes)
--
-- @use store/record
-- @use unit/unit

--   part  from, to: places in due; at: the last place that was decided; chunk: what is left of it; bytes: removed so far
local function step_some(tx, s, clock, due, part)
  if part.at then -- an error was raised there, or behind the last task
    part.to = part.at
  end
  local r = {counts = {}, errors = {}, full = #due == clock.most, batch = s.batch, chunk = part.chunk, bytes = part.bytes}
  if clock.tasks then
    record.load(tx, {unpack(due, part.from, part.to)})
  end
  for place = part.from, part.to do
    part.at, tx.on = place, due[place]
    clock.step(tx, r, due[place], clock.key)
  end
  tx.on = nil
  return r
end

-- add adds the results of a unit to those of the sweep.
local function add(s, r)
  for what, n in pairs(r.counts) do
    s.counts[what] = (s.counts[what] or 0) + n
  end
  for _, why in ipairs(r.errors) do
    s.errors[#s.errors + 1] = why
  end
  s.full = s.full or r.full
end

local function look(tx, s, clock)
  local due = redis.pcall("ZRANGEBYSCORE", clock.key, "-inf", clock.bound, "LIMIT", 0, string.format("%d", clock.most))
  if due.err then
    s.errors[#s.errors + 1] = clock.key .. ": " .. due.err
    return
  end
  local part, size = {from = 1, chunk = s.batch, bytes = 0}, #due
  while part.from <= #due do
    local to = math.min(part.from + size - 1, #due)
    part.to, part.at = to, nil
    local r = unit(tx, step_some, s, clock, due, part)
    add(s, r)
    part.from, part.chunk, part.bytes = part.to + 1, r.chunk, r.bytes
    size = part.to < to and 16 or 2 * size
  end
end
