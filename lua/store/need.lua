-- need raises if the user may not run a command on a key. If the user lacks the command itself, the error names the
-- root, which the user can write (store/lacking.lua). Otherwise it names the key.
local function need(tx, command, key, ...)
  if not redis.acl_check_cmd(command, key, ...) then
    local on = redis.acl_check_cmd(command, tx.key.root, ...) and key or tx.key.root
    error({err = "NOPERM this user may not run " .. command .. " on " .. on .. ": nothing was written"}, 0)
  end
end
