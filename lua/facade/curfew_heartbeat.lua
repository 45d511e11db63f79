-- curfew_heartbeat: renews the lease of a worker, and returns which attempts must stop.
--
-- KEYS[1]  root of a partition
-- ARGV[1]  worker
-- ARGV[2…] claims    its attempts: 0-01J9…=3 0-01JA…=1, ids and epochs, separated by commas or spaces; absent: none
--          lease     the time until it counts as dead, unless it calls again; absent: 30s; 0s: its tasks are given back
--          known     the newest seq of curfew_fetch whose reply has arrived: claims up to it that are not named are given
--                    back; absent: none are
--          progress  how far the attempt is, if claims names one alone; 1024 bytes are kept
--
-- Returns  {"now", ms, "left", n, "stops", {{"id", id, "epoch", n, "reason", word}, …}, "stop", n}
--            stops   end these attempts and drop their results; with the reason cancelling end the attempt and settle it
--            left    how many tasks it still holds after 0s: repeat the call until this is 0
--            stop    1: the worker must stop: fetch no more, settle what it holds, then send a lease of 0s
-- Ends     FAILED: late tasks among the claims
-- Flags    allow-oom        a full Redis must still drain
--
-- @use call/heartbeat
-- @use check/values: whole
-- @use named/options: clip, count_of, id_of, options, reject, root_of, span_of, worker_of
-- @use named/reply: plain, reply
local parameters = {claims = true, lease = true, lease_ms = true, known = true, progress = true}

local function heartbeat_named(keys, argv)
  local root, worker = root_of(keys), worker_of(argv, "worker")
  local args = options.read(argv, 2, parameters)
  local words = {worker, span_of(args, "lease", "30000", 0, 86400000), count_of(args, "known", "0", 0)}
  if #(args.claims or "") > 655360 then
    reject("INVALID", "claims has " .. #args.claims .. " bytes, and may have 655360")
  end
  for word in string.gmatch(args.claims or "", "[^%s,]+") do
    local id, epoch = string.match(word, "^([^=]*)=(%d+)$")
    if not whole(epoch) then
      reject("INVALID", 'the claim "' .. clip(word) .. '" must be an id, = and its epoch, such as 0-01J9ZK3Q8X4M2C7W5T=1')
    end
    words[#words + 1] = id_of(id, root)
    words[#words + 1] = epoch
    words[#words + 1] = ""
  end
  if #words > 3003 then
    reject("INVALID", "there are " .. (#words - 3) / 3 .. " claims, and a call takes up to 1000")
  elseif args.progress and #words ~= 6 then
    reject("INVALID", "progress needs one claim: name one")
  end
  words[6] = args.progress or words[6]
  local answer = plain(heartbeat(keys, words))
  local stops, stop = {}, "0"
  for i = 3, #answer do
    local id, epoch, reason = unpack(answer[i])
    if id == "-" then
      stop = "1"
    else
      stops[#stops + 1] = {"id", id, "epoch", epoch, "reason", reason}
    end
  end
  return {"now", string.format("%d", answer[1]), "left", string.format("%d", answer[2]), "stops", stops, "stop", stop}
end

local function curfew_heartbeat(keys, argv)
  return reply(heartbeat_named, keys, argv)
end
