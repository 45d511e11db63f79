-- complete raises what flush could not write, now that everything else is written.
local function complete(failed)
  if failed then
    error(failed, 0)
  end
end
