-- curfew_resolve: settles a promise, which no worker runs.
--
-- KEYS[1]  root of a partition
-- ARGV[1]  id
-- ARGV[2…] result  completes it, with these bytes
--          error   fails it, with this text; give one of the two
--          call    identifies this call: a repeat gets the same reply
--
-- Returns  {"id", id, "status", status, "changed", "1"}
--          {"id", id, "status", status, "changed", "0", "result" or "error", bytes}: it had ended
-- Ends     COMPLETED, FAILED
-- Flags    allow-oom        a full Redis must still drain
--
-- @use call/resolve
-- @use named/options: call_of, first, id_of, options, reject, root_of
-- @use named/reply: plain, reply, settled
local parameters = {result = true, error = true, call = true}

local function resolve_named(keys, argv)
  local root = root_of(keys)
  local id = id_of(first(argv, "the id"), root)
  local args = options.read(argv, 2, parameters)
  if (args.result == nil) == (args.error == nil) then
    reject("INVALID", "give result or error, one of them")
  end
  local verb = args.result and "complete" or "fail"
  return settled(id, plain(resolve(keys, {call_of(args, root, argv), verb, id, args.result or args.error}))[1])
end

local function curfew_resolve(keys, argv)
  return reply(resolve_named, keys, argv)
end
