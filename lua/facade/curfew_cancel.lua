-- curfew_cancel: cancels a task that has not ended.
--
-- KEYS[1]  root of a partition
-- ARGV[1]  id
-- ARGV[2…] reason  why, up to 8192 bytes
--          owner   the task that it must be a child of
--          call    identifies this call: a repeat gets the same reply
--
-- Returns  {"id", id, "status", "CANCELLED", "changed", "1"}
--          {"id", id, "status", "CANCELLING", "changed", "1", "grace_at", ms}: its handler must stop until then
--          {"id", id, "status", status, "changed", "0", "result" or "error", bytes}: it had ended
-- Ends     CANCELLED
-- Flags    allow-oom        a full Redis must still drain
--
-- @use call/cancel
-- @use named/options: call_of, first, id_of, options, reject, root_of
-- @use named/reply: plain, reply, settled
local parameters = {reason = true, owner = true, call = true}

local function cancel_named(keys, argv)
  local root = root_of(keys)
  local id = id_of(first(argv, "the id"), root)
  local args = options.read(argv, 2, parameters)
  local reason = args.reason or ""
  if #reason > 8192 then
    reject("INVALID", "reason has " .. #reason .. " bytes, and may have 8192")
  end
  local owner = args.owner and id_of(args.owner, root) or ""
  local answer = plain(cancel(keys, {call_of(args, root, argv), reason, owner, id}))[1]
  if answer[1] == "FOREIGN" then
    reject("OWNER", id .. " is not a child of " .. owner)
  elseif answer[1] == "CANCELLING" then
    return {"id", id, "status", "CANCELLING", "changed", "1", "grace_at", answer[2]}
  elseif answer[1] == "CANCELLED" then
    answer = {"OK", "CANCELLED"}
  end
  return settled(id, answer)
end

local function curfew_cancel(keys, argv)
  return reply(cancel_named, keys, argv)
end
