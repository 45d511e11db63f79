-- add_figures adds counts to the hash of a kind (store/figures.lua says what its fields are called). To read all fields
-- and to write them takes two commands; HINCRBY would take one for each field.
--
-- Up to 1,000 kinds have a hash. Those that come later share one more, "-", which no kind can be called. A hash that
-- has some of the fields is there already, so the set of kinds is looked at only where it has none of them.
--
--   counts  how much to add, by the name of the field behind that of the queue
--
-- @use store/try

local most_kinds = 1000

-- about is a field of its own in each hash. It says what the hash is. A value of more than 64 bytes also has Redis keep
-- the hash as a table: otherwise each field is looked for among all others, up to 512 of them.
local about = "How the tasks of this kind ended and how long they took, by queue: see docs/keys.md, Figures"

-- home is the hash that counts a kind of whose queue its own has nothing yet.
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

local function add_figures(tx, kind, queue, counts)
  local key, fields, adds, n = tx.key.figures .. kind, {}, {}, 0
  for name, more in pairs(counts) do
    n = n + 1
    fields[n], adds[n] = queue .. name, more
  end
  local old = try(tx, "HMGET", key, unpack(fields))
  if old and all_absent(old, n) then
    key = home(tx, kind)
    old = try(tx, "HMGET", key, unpack(fields))
  end
  if old then
    local words = {}
    for i = 1, n do
      words[2 * i - 1], words[2 * i] = fields[i], string.format("%d", (tonumber(old[i] or 0) or 0) + adds[i])
    end
    try(tx, "HSET", key, unpack(words))
  end
end
