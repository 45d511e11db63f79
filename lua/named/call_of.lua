-- call_of returns the id of this call. If the caller gave none, call_of makes it of the instant and the arguments.
--
-- @use store/now
-- @use named/word_of
local function call_of(given, root, argv)
  return given.call and word_of(given, "call") or string.format("%d-", now(root)) .. redis.sha1hex(table.concat(argv, "\n"))
end
