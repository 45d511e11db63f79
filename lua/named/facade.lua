-- facade says which façade this is. A program replaces one with a smaller build number, if its own works with the same
-- versions of records.
local facade = {build = 1, records = "2"}
