-- curfew_signal: sends an agent a signal, once for each name. A signal that the agent does not wait for yet is kept.
--
-- KEYS[1]  root of a partition
-- ARGV[1]  id of the agent
-- ARGV[2]  name of the signal
-- ARGV[3…] payload  bytes for the agent; absent: empty
--          call     identifies this call: a repeat gets the same reply
--
-- Returns  {"id", id, "status", "COMPLETED", "changed", "1"}: id of the promise that holds the signal
--          {"id", id, "status", status, "changed", "0", "result", bytes}: a signal of that name was sent before
-- Ends     COMPLETED
-- Flags    allow-oom        an agent waits for it
--
-- @use call/signal
-- @use named/options: call_of, first, id_of, options, reject, root_of
-- @use named/reply: plain, reply, settled
local parameters = {payload = true, call = true}

local function signal_named(keys, argv)
  local root = root_of(keys)
  local agent = id_of(first(argv, "the id of the agent and the name of the signal"), root)
  if not argv[2] then
    reject("INVALID", "give the name of the signal behind the id of the agent")
  end
  local args = options.read(argv, 3, parameters)
  local answer = plain(signal(keys, {call_of(args, root, argv), agent, argv[2], args.payload or ""}))
  return settled(agent .. ".s-" .. argv[2], answer[1] == "OK" and {"OK", "COMPLETED"} or answer)
end

local function curfew_signal(keys, argv)
  return reply(signal_named, keys, argv)
end
