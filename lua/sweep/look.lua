-- look handles the due entries of one clock, oldest first, as one unit of work. An unreadable clock or record delays nothing
-- else.
--
-- If the decision on a task raises an error, the unit ends with that task. The entries behind it become units of 16 entries
-- that double, so each task is decided only a few times, however many raise errors. If a tenth of them does, a sweep takes
-- twice the time.
--
--   s      of the whole sweep: batch, counts, errors, full (a clock had a full batch)
--   clock  key, bound (the latest score that is due), step, and most (how many entries one sweep takes)
--
-- @use store/record
-- @use unit/unit

--   range  from, to: places in due; at: the last place that was decided; chunk: children that may still end; bytes: removed
--          so far
local function step_some(tx, s, clock, due, range)
  if range.at then -- an error was raised there, or behind the last task
    range.to = range.at
  end
  local r = {counts = {}, errors = {}, full = #due == clock.most, batch = s.batch, chunk = range.chunk, bytes = range.bytes}
  if clock.tasks then
    record.load(tx, {unpack(due, range.from, range.to)})
  end
  for place = range.from, range.to do
    range.at, tx.on = place, due[place]
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
  for _, fault in ipairs(r.errors) do
    s.errors[#s.errors + 1] = fault
  end
  s.full = s.full or r.full
end

local function look(tx, s, clock)
  local due = redis.pcall("ZRANGEBYSCORE", clock.key, "-inf", clock.bound, "LIMIT", 0, string.format("%d", clock.most))
  if due.err then
    s.errors[#s.errors + 1] = clock.key .. ": " .. due.err
    return
  elseif not due[1] then
    return
  end
  local range, size = {from = 1, chunk = s.batch, bytes = 0}, #due
  while range.from <= #due do
    local to = math.min(range.from + size - 1, #due)
    range.to, range.at = to, nil
    local r = unit(tx, step_some, s, clock, due, range)
    add(s, r)
    range.from, range.chunk, range.bytes = range.to + 1, r.chunk, r.bytes
    size = range.to < to and 16 or 2 * size
  end
end
