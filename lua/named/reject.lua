-- reject ends a function of the façade: the caller gets the error reply "CURFEW WORD sentence". Nothing has been
-- written by then.
--
--   word  INVALID    an argument is missing, unknown, given twice or not valid
--         PARTITION  the task belongs to another partition
--         NAMESPACE  the namespace was not opened, or is of another version
--         MISSING    there is no such task
--         LOST       the task no longer belongs to this claim
--         CONFLICT   the idempotency key belongs to a task with another kind or payload
--         TAKEN      the id belongs to another task
--         OWNER      the owner of the child has ended, or does not exist
--         BROKEN     a record cannot be read
local function reject(word, sentence)
  error({curfew = word, says = sentence}, 0)
end
