-- fetch: a worker with free slots takes tasks.
--
-- KEYS[1]  root of the partition
-- ARGV[1]  worker
-- ARGV[2]  seq, grows by each fetch; the same again repeats a fetch whose answer was lost
-- ARGV[3]  how many tasks at the most
-- ARGV[4]  ms of lease; the worker is alive that long without another word
-- ARGV[5…] queue, quota, …: in order; see include/claim.lua
--
-- Returns  {now, {more, {id, epoch, queue, kind, payload, …}, …}, error, …}
--            error  a key that could not be worked with; everything else was done
-- Ends     FAILED, what is late in line
-- Flags    allow-oom        a full Redis must still drain
--
-- @include keys
-- @include now
-- @include claim
-- @include flush

local k, at = keys(KEYS[1]), now()
local ask = {worker = ARGV[1], seq = tonumber(ARGV[2]), n = tonumber(ARGV[3]), lease = tonumber(ARGV[4]), quotas = {}}
for i = 5, #ARGV do
  ask.quotas[i - 4] = ARGV[i]
end
local claims, errors = claim(k, ask, at)
errors[#errors + 1] = flush(k, at)
return {at, claims, unpack(errors)}
