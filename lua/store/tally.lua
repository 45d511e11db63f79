-- tally collects what a unit of work adds to the figures of kinds (store/figures.lua), and writes it. All that a unit
-- adds for one kind and queue costs one command if it is one field, and two if there are more.
--
-- @use store/buckets
-- @use store/own
-- @use store/try

local most_fields = 10000

-- node_field returns the field that counts what a new field would count. A hash with 10,000 fields gets no field for
-- another node of a flow: those nodes share the name "-". All other fields are as they were given.
local function node_field(tx, key, field)
  local what = string.match(field, "^- node %S+ (.+)$")
  if what and (try(tx, "HLEN", key) or most_fields) >= most_fields then
    return "- node - " .. what
  end
  return field
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
    local name = node_field(tx, right, field)
    if right ~= key or name ~= field then
      try(tx, "HDEL", key, field)
      try(tx, "HINCRBY", right, name, words)
    end
  end
end

local function add_many(tx, key, kind, fields, adds)
  local n, words = #fields, {}
  local old = try(tx, "HMGET", key, unpack(fields))
  if old and all_absent(old, n) then
    key = home(tx, kind)
    old = try(tx, "HMGET", key, unpack(fields))
  end
  if old then
    for i = 1, n do
      local name = old[i] and fields[i] or node_field(tx, key, fields[i])
      if name ~= fields[i] then
        try(tx, "HINCRBY", key, name, string.format("%d", adds[i]))
      else
        words[#words + 1], words[#words + 2] = name, string.format("%d", (tonumber(old[i] or 0) or 0) + adds[i])
      end
    end
    if words[1] then
      try(tx, "HSET", key, unpack(words))
    end
  end
end

-- add_figures adds counts to the hash of a kind (store/figures.lua lists its fields). One field is added with
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

local tally = {}

-- of returns the table of what to add to the fields of a task's kind and queue.
function tally.of(tx, task)
  local kinds = own(tx, "tallies")
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
  local before = #tx.failed
  for kind, queues in pairs(tx.tallies) do
    for queue, counts in pairs(queues) do
      add_figures(tx, kind, queue, counts)
    end
  end
  if tx.strict and #tx.failed > before then
    local failed = own(tx, "failed")
    for n = #failed, before + 1, -1 do
      failed[n] = nil
    end
  end
end
