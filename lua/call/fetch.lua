-- fetch: a worker with free slots takes tasks.
--
-- ARGV[1]  worker
-- ARGV[2]  seq: greater with each fetch; the same seq repeats a fetch whose reply was lost
-- ARGV[3]  how many tasks at the most; one call returns up to 500 tasks and 4 MiB
-- ARGV[4]  ms of lease: the worker counts as alive for that time without another call
-- ARGV[5]  how many tasks the worker holds in other partitions
-- ARGV[6…] queue, quota, …: in this order (task/claim.lua)
--
-- Returns  {now, {look, claim, …}, error, …}
--            look   queue/queue.lua
--            claim  five values (task/claim.lua)
--            error  a key that could not be read or written; everything else was done
-- Ends     tasks in line that must end: FAILED if their time was up, CANCELLED if their owner has ended
-- Flags    allow-oom        a full Redis must still drain
--
-- @use check/values: names
-- @use queue/queue: look_again
-- @use store/tell
-- @use store/tx: begin, read_root
-- @use task/claim: claim, read_ask
-- @use unit/unit

local function fetch(keys, argv)
  local ask = read_ask(argv, 2, names.word("worker", argv[1]))
  local tx = read_root(begin(keys[1]))
  local claims = unit(tx, claim, ask)
  return tell.reply(tx, {tx.at, {look_again(tx, claims), unpack(claims)}, unpack(tx.reply.failed)})
end
