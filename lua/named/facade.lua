-- facade is the build number of the façade, and the versions of records that it can read. A program replaces a façade
-- that has a smaller number if its own reads the same versions.
local facade = {build = 1, records = "2"}
