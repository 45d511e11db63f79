-- facade has the build number of the façade. A program replaces a façade with a smaller number by its own, if its own works with
-- the same versions of records (store/tx).
local facade = {build = 4}
