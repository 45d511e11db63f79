-- read_workers: returns the workers, in pages. A worker whose lease has expired is returned until a sweep removes it.
--
-- ARGV[1]  cursor: next of the previous reply; absent or 0 at first
-- ARGV[2]  the approximate size of a page, up to 1000; absent: 100
--
-- Returns  {now, next, {worker, end of its lease, number of its claims, name, value, …}, …}
--            next  cursor of the next call; 0: these were the last. A worker can be returned twice, and one that
--                  starts meanwhile can be missing
--            name  state and about, as describe_worker set them; stop: when it was requested to stop; seq
-- Flags    no-writes
--
-- @use check/values: whole
-- @use store/tx: begin_read
local function read_workers(keys, argv)
  if not whole(argv[1] or "0") then
    error("argument 1 must be 0, or the cursor of an earlier reply", 0)
  elseif not whole(argv[2] or "100", 1, 1000) then
    error("argument 2 must be how many workers to return, 1 to 1000", 0)
  end
  local tx = begin_read(keys[1])
  local key = tx.key
  local page = redis.call("ZSCAN", key.workers, argv[1] or "0", "COUNT", string.format("%d", argv[2] or "100"))
  local answers = {tx.at, page[1]}
  for i = 1, #page[2], 2 do
    local worker = page[2][i]
    local row = {worker, page[2][i + 1], redis.call("ZCARD", key.claims .. worker)}
    for _, word in ipairs(redis.call("HGETALL", key.worker .. worker)) do
      row[#row + 1] = word
    end
    answers[#answers + 1] = row
  end
  return answers
end
