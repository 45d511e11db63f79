-- look does what is due on one clock, oldest first, as one unit of work. A clock that cannot be read, and a
-- record that cannot be worked with, hold up nothing else.
--
-- Where deciding raises on a task, the unit ends with that task, and the others behind it are units of their own,
-- small ones at first. So a task is decided a few times, however many raise: if a tenth raises, a sweep takes twice
-- the time.
--
--   s      of the whole sweep: batch, counts, errors, full (a clock had more than a batch)
--   clock  key, the bound of what is due, step, and most of it that one sweep takes
--
-- @use store/record
-- @use store/unit

--   part  from and to, places in what is due; at, the last that was decided; what is left of chunk and bytes
local function step_some(tx, s, clock, due, part)
  if part.at then -- it raised there, or behind all of them
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

-- add puts what a unit has done to what the sweep has.
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
