-- fetch: a worker with free slots takes tasks.
--
-- ARGV[1]  worker
-- ARGV[2]  seq: grows with each fetch; the same again repeats a fetch whose answer was lost
-- ARGV[3]  how many tasks at the most; one call gives 500, and 4 MiB
-- ARGV[4]  ms of lease: the worker is alive that long without another call
-- ARGV[5…] queue, quota, …: in order (task/claim.lua)
--
-- Returns  {now, {look, claim, …}, told, error, …}
--            look   queue/look_again.lua
--            claim  five values (task/parcels.lua)
--            told   store/tell.lua
--            error  a key that could not be worked with; everything else was done
-- Ends     FAILED, what is late in line
-- Flags    allow-oom        a full Redis must still drain
--
-- @use check/names
-- @use store/begin
-- @use store/read_root
-- @use store/unit
-- @use queue/look_again
-- @use task/claim
-- @use task/read_ask

local function fetch(keys, argv)
  local ask = read_ask(argv, 2, names.word("worker", argv[1]))
  local tx = read_root(begin(keys[1]))
  local claims = unit(tx, claim, ask)
  return {tx.at, {look_again(tx, claims), unpack(claims)}, tx.told, unpack(tx.failed)}
end
