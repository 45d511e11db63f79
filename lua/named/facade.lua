-- facade is the build number of the façade. A program replaces a façade that has a smaller number if its own works with
-- the same versions of records (store/tx).
local facade = {build = 2}
