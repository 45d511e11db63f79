-- Counters and histograms, by kind and queue, since the namespace was made.
--
-- @use store/state: policy
-- @use store/try

-- buckets are the histograms of figures. A value is counted in one bucket: the first whose bound is not
-- below the value, or "more" if the value is above all bounds. A bucket does not include the values of the buckets
-- below it. Programs read the bounds from the names of the fields, and add up the counts of several partitions. So a
-- later version can add a bound and must not remove one. inspect/figures.go has the same table; a test compares them.
--
--   duration               ms from started_at to completed_at
--   timed                  the same, of tasks that timed out
--   waiting                ms from the instant at which the task could be fetched to started_at
--   lag <timeout_type>     ms from the instant of a timeout (completed_at, if it ended a task) until it was written; of attempts
--                          also if another attempt followed, and of waits (synchronization)
--   woken <mode> <reason>  ms from the instant that decided the wait of an agent until the agent was in line
--   share                  thousandths of the time from created_at to deadline_at, rounded up, that had passed at completed_at
local buckets = {}

-- From 1 ms to a day. From 1 s on the bounds are round times, such as 30 s and 5 min.
local times = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 30000, 60000, 120000, 300000, 600000, 1800000,
  3600000, 7200000, 21600000, 43200000, 86400000}

local lags = {1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 300, 500, 1000, 2000, 5000, 10000, 30000, 60000}

local histograms = {
  duration = {bounds = times},
  timed = {bounds = times},
  waiting = {bounds = times},
  lag = {bounds = lags},
  woken = {bounds = lags},
  share = {bounds = {100, 200, 300, 400, 500, 600, 700, 800, 900, 1000}},
}

-- name makes the names of the fields once, as they follow the name of a queue. (ipairs does not exist while a library
-- is being loaded.) places caches the buckets of values up to 1,000.
local function name(histogram, what)
  histogram.places, histogram.ends, histogram.fields, histogram.sum = {}, {}, {}, " " .. what .. " sum"
  for i = 1, #histogram.bounds + 1 do
    histogram.ends[i] = " " .. (histogram.bounds[i] or "more")
    histogram.fields[i] = " " .. what .. histogram.ends[i]
  end
end

name(histograms.duration, "duration")
name(histograms.timed, "timed")
name(histograms.waiting, "waiting")
name(histograms.lag, "lag")
name(histograms.woken, "woken")
name(histograms.share, "share")

local function bucket_of(histogram, value)
  local bounds = histogram.bounds
  for place = 1, #bounds do
    if value <= bounds[place] then
      if value <= 1000 then
        histogram.places[value] = place
      end
      return place
    end
  end
  return #bounds + 1
end

-- add counts a value n times, in a table of what is to be added to each field. A value below 0 counts as 0.
--
--   of  the words between the name of the histogram and the bound, or nil
function buckets.add(counts, what, value, n, of)
  value = value > 0 and value or 0
  local histogram = histograms[what]
  local place = histogram.places[value] or bucket_of(histogram, value)
  local field, sum = histogram.fields[place], histogram.sum
  if of then
    local start = " " .. what .. " " .. of
    field, sum = start .. histogram.ends[place], start .. " sum"
  end
  counts[field], counts[sum] = (counts[field] or 0) + n, (counts[sum] or 0) + n * value
end

local most_fields = 10000

-- shared_field returns the field that counts in place of a new field, or nil. A hash with 10,000 fields gets no field for
-- another node of a flow: those nodes share the name "-".
local function shared_field(tx, key, field)
  local what = string.match(field, "^- node %S+ (.+)$")
  if what and (try(tx, "HLEN", key) or most_fields) >= most_fields then
    return "- node - " .. what
  end
end

local most_kinds = 1000

-- about is a field of each hash that says what the hash is. Because it is longer than 64 bytes, Redis stores the hash
-- as a hash table. In a listpack it would search up to 512 fields one after the other.
local about = "How the tasks of this kind ended and how long they took, by queue: see docs/reference/keys.md, Figures"

-- home returns the key of the hash that counts a kind and queue whose fields are not in the hash of the kind yet.
local function home(tx, kind)
  if try(tx, "SISMEMBER", tx.key.kinds, kind) ~= 1 then
    if (try(tx, "SCARD", tx.key.kinds) or most_kinds) >= most_kinds then
      kind = "-"
    end
    if try(tx, "SADD", tx.key.kinds, kind) == 1 then
      try(tx, "HSET", tx.key.figures .. kind, "about", about)
    end
  end
  return tx.key.figures .. kind
end

local function all_absent(values, n)
  for i = 1, n do
    if values[i] then
      return false
    end
  end
  return true
end

-- add_one adds to one field. If the field is new and belongs elsewhere, it is moved there.
local function add_one(tx, key, kind, field, more)
  local words = string.format("%d", more)
  if try(tx, "HINCRBY", key, field, words) == more then
    local right = home(tx, kind)
    local shared = shared_field(tx, right, field)
    if right ~= key or shared then
      try(tx, "HDEL", key, field)
      try(tx, "HINCRBY", right, shared or field, words)
    end
  end
end

local function add_many(tx, key, kind, fields, adds)
  local n, words, last = #fields, {}, 0
  local old = try(tx, "HMGET", key, unpack(fields))
  if old and all_absent(old, n) then
    key = home(tx, kind)
    old = try(tx, "HMGET", key, unpack(fields))
  end
  if not old then
    return
  end
  for i = 1, n do
    local field = fields[i]
    local shared = not old[i] and shared_field(tx, key, field)
    if shared then
      try(tx, "HINCRBY", key, shared, string.format("%d", adds[i]))
    else
      last = last + 2
      words[last - 1], words[last] = field, string.format("%d", (tonumber(old[i]) or 0) + adds[i])
    end
  end
  if last > 0 then
    try(tx, "HSET", key, unpack(words))
  end
end

-- add_figures adds counts to the hash of a kind (figures lists its fields). One field is added with
-- HINCRBY. It reads several fields with one command and writes them with another; HINCRBY would need one for each field.
--
-- Up to 1,000 kinds have a hash of their own. Later kinds share the hash "-", which is not a valid name of a kind. The
-- set of kinds is read only if the hash has none of the fields: otherwise the hash is known to exist.
--
--   counts  how much to add, by the name of the field without its queue
local function add_figures(tx, kind, queue, counts)
  local key, fields, adds, n = tx.key.figures .. kind, {}, {}, 0
  for name, more in pairs(counts) do
    n = n + 1
    fields[n], adds[n] = queue .. name, more
  end
  if n == 1 then
    add_one(tx, key, kind, fields[1], adds[1])
  else
    add_many(tx, key, kind, fields, adds)
  end
end

-- tally collects what a unit of work adds to the figures of kinds, and writes it. All that a unit
-- adds for one kind and queue costs one command if it is one field, and two if there are more.
local tally = {}

-- own returns the tasks of this unit that ended, and what else to add, by kind and queue.
local function own(tx)
  local mine = tx.figures
  if not mine then
    mine = {ended = {}, kinds = {}}
    tx.figures = mine
  end
  return mine
end

-- of returns the table of what to add to the fields of a task's kind and queue.
function tally.of(tx, task)
  local kinds = (tx.figures or own(tx)).kinds
  local queues = kinds[task.kind]
  if not queues then
    queues = {}
    kinds[task.kind] = queues
  end
  local counts = queues[task.queue]
  if not counts then
    counts = {}
    queues[task.queue] = counts
  end
  return counts
end

-- add counts one event of a task in a field, whose name is given without the queue.
function tally.add(tx, task, field)
  if tx.root.figures then
    local counts = tally.of(tx, task)
    counts[field] = (counts[field] or 0) + 1
  end
end

-- of_node returns the table of what to add to the figures of the runs of a definition, and what fields of a node begin with.
-- The nodes of all queues are counted together, so the queue is "-".
function tally.of_node(tx, task)
  local definition, name = string.match(task.node, "^(%S+) %S+ (%S+)$")
  return tally.of(tx, {kind = "flow." .. definition, queue = "-"}), " node " .. name
end

-- timeout counts a timeout that ends no task, and how late it was written.
--
--   since  the instant of the limit
function tally.timeout(tx, task, field, timeout_type, since)
  if tx.root.figures then
    tally.add(tx, task, field)
    buckets.add(tally.of(tx, task), "lag", tx.at - since, 1, timeout_type)
  end
end

-- retried_node counts an attempt of a node that took too long and is followed by another one.
function tally.retried_node(tx, task)
  if tx.root.figures and task.node then
    local nodes, begins = tally.of_node(tx, task)
    local field = begins .. " retried timeout"
    nodes[field] = (nodes[field] or 0) + 1
  end
end

-- write adds the counts to the figures. A strict call stores all or raises an error. Its tasks are stored by now, so figures
-- that cannot be written are no error of that call.
function tally.write(tx)
  local failed = tx.reply.failed
  local before = #failed
  for kind, queues in pairs(tx.figures.kinds) do
    for queue, counts in pairs(queues) do
      add_figures(tx, kind, queue, counts)
    end
  end
  if tx.strict then
    for n = #failed, before + 1, -1 do
      failed[n] = nil
    end
  end
end

-- same_figures reports whether two ends add the same to the figures. So many tasks that were made together and end
-- together cost little more than one of them.
local function same_figures(a, b)
  return a.completed_at == b.completed_at and a.created_at == b.created_at and a.deadline_at == b.deadline_at and
    a.status == b.status and a.reason == b.reason and a.timeout_type == b.timeout_type and a.on_deadline == b.on_deadline and
    a.kind == b.kind and a.queue == b.queue and a.node == b.node and not a.under_way and not b.under_way and not a.children and not b.children
end

-- figures counts, by kind and queue, how many tasks were created, how they ended and how long they took, since the
-- namespace was opened. The commit that makes it true also writes the counts in Redis. So each event counts once, and
-- all readers get the same figures.
--
-- A kind has a hash. The name of a field is the name of a queue, a figure, and what is counted:
--
--   <queue> enqueued <source> <when>                client, agent (a child), hook or retry; now or later (task/create.lua)
--   <queue> ended <status>                          ends: of COMPLETED
--   <queue> ended <status> <reason>                 of FAILED and CANCELLED
--   <queue> ended <status> timeout <timeout_type> <policy>   of timeouts; versions before did not write the policy
--   <queue> retried timeout                         attempts that took too long and were followed by another one
--   <queue> wait timeout <policy>                   waits of agents that reached their limit; fail or proceed_with_available
--   <queue> late                                    outcomes that came after the task had timed out
--   <queue> <histogram> <bound>                     values in the bucket of this bound
--   <queue> <histogram> more                        values above the last bound
--   <queue> <histogram> sum                         the sum of all values
--   - node <name> ended <status> …                  the same of a node of a flow, in the hash of its runs, for all queues
--   - node <name> retried timeout                   and of its attempts; nodes beyond a bound share the name "-"
--   about                                           what the hash is, in words
--
-- A namespace that was opened without figures counts nothing.
local figures = {}

-- note adds a task to the ends to be counted. The task must still have its status from before the end. A task that is
-- in line again has no attempt under way, and so no duration and no waiting time.
function figures.note(tx, task)
  if tx.root.figures then
    local ended = (tx.figures or own(tx)).ended
    ended[#ended + 1] = task
    task.under_way = task.status ~= "PENDING" or task.woken
  end
end

-- how_it_ended returns the name of a field, without its queue.
local function how_it_ended(task)
  if not task.reason then
    return " ended " .. task.status
  elseif not task.timeout_type then
    return " ended " .. task.status .. " " .. task.reason
  end
  return " ended " .. task.status .. " " .. task.reason .. " " .. task.timeout_type .. " " .. policy(task)
end

-- add counts n ends that are alike.
local function add(counts, tx, task, n)
  local how = how_it_ended(task)
  counts[how] = (counts[how] or 0) + n
  if task.node then
    local nodes, begins = tally.of_node(tx, task)
    nodes[begins .. how] = (nodes[begins .. how] or 0) + n
  end
  local created, completed = tonumber(task.created_at), tonumber(task.completed_at)
  local started = task.under_way and tonumber(task.started_at)
  if started then -- its owner's wait may have ended before the attempt began; such a duration counts as 0
    buckets.add(counts, task.timeout_type and "timed" or "duration", completed - started, n)
    buckets.add(counts, "waiting", started - (task.ready_at or created), n)
  end
  if task.timeout_type then
    buckets.add(counts, "lag", tx.at - completed, n, task.timeout_type)
  end
  if task.deadline_at then
    local span = task.deadline_at - created
    buckets.add(counts, "share", span > 0 and math.ceil(1000 * (completed - created) / span) or 1000, n)
  end
end

-- write counts the ends of a unit, and writes all that the unit has counted.
function figures.write(tx)
  local ended, from = tx.figures.ended, 1
  while ended[from] do
    local task, to = ended[from], from + 1
    while ended[to] and same_figures(task, ended[to]) do
      to = to + 1
    end
    add(tally.of(tx, task), tx, task, to - from)
    from = to
  end
  tally.write(tx)
end
