-- begin makes tx: what one call knows, and what it still has to write. tx is the first argument of every function that
-- uses Redis. Each field is listed with the file that owns it.
--
-- For the whole call:
--
--   at, now               the time of the call, read once: ms as a number, and as text
--   key                   the names of all keys of the partition                 store/keys.lua
--   root                  the fields read from the partition's root              store/read_root.lua
--   failed                errors of commands that failed, for the reply          store/try.lua
--   poison                tasks whose data made deciding raise, and why          unit/unit.lua
--   told, timed_out, timers_fired  timeouts, wakes and timers, for the reply     store/tell.lua
--   strict                refuse keys of the wrong type before anything is written  unit/unit.lua
--   asked, found_empty, more  queues of a worker's request; those that are empty; whether any has more tasks  queue/wake.lua
--   stopping              the worker must stop                                   task/claim.lua
--   repeated              its seq was used before                                task/claim.lua
--   may_cancel, may_wake  how many more losers and agents this call can end, wake  agent/wake_agents.lua
--
-- For one unit of work, until renew (unit/unit.lua):
--
--   tasks, changed, texts    tasks read; tasks whose state changes; texts of new ones  store/record.lua
--   index, sets              what sorted sets gain and lose                        store/index.lua
--   counts, recounts         counters of queues, and what a running recount must add  queue/count.lua
--   figures, tallies         tasks that ended, to be counted by kind; what else is counted  store/figures.lua, store/tally.lua
--   wakes                    queues for which to wake an idle worker               queue/wake.lua
--   events, stops, ended     events; messages to workers; messages to watchers     store/emit.lua, store/publish.lua
--   lists, drops, before, after   other writes, before and after the records       store/later.lua
--   drained                  when tasks ended that still have live children        task/drained.lua
--   waits, fired             waits of agents, and agents whose wait has fired      wait/read_wait.lua, agent/count_wait.lua
--   noted, overdue           members that ended, and children that may be out of time, by owner  wait/count_end.lua, agent/unseen.lua
--   journals                 changes of journals                                   wait/journal.lua
--   rooms                    how many tasks queues can give                        queue/free_slots.lua
--   drafts                   the texts of new tasks, by shape and owner            task/plan.lua
--   keyed, large             tasks of idempotency keys; large payloads             task/idempotency.lua, task/create.lua
--   aside, put_aside         tasks put aside in this unit; in earlier units        task/put_aside.lua
--   timeouts, woken, timers  tasks that timed out, agents woken, timers that fired  store/tell.lua
--   earliest                 the next instant at which something is due            store/alarm.lua
--   seq, front               the last places given in line; seq numbers ids, too  queue/place.lua, named/store_tasks.lua
--   number                   the least number of a later task                    task/incarnation.lua
--   recount                  running tasks must be counted again; "go on": continue  queue/recount_running.lua
--   on                       the task that is being decided                        unit/unit.lua
--   stale                    the unit has been written, or is being written        unit/unit.lua
--
-- @use store/keys
-- @use store/now

-- none is an empty table that all calls share. Nothing writes into it (store/own.lua).
local none = {}

local function begin(root)
  local at = now(root)
  return {
    at = at, now = string.format("%d", at), key = keys.of(root), root = false, none = none, failed = none, poison = none,
    told = none, timed_out = 0, timers_fired = 0, strict = false, asked = false, found_empty = false, more = false, stopping = false, repeated = false, may_cancel = 100, may_wake = 100,
    tasks = {}, changed = {}, texts = {}, index = {}, sets = {}, counts = {}, recounts = none, wakes = none, events = none, stops = none, figures = none, tallies = none,
    ended = none, lists = none, drops = none, before = none, after = none, drained = none, waits = none, fired = none, noted = none, overdue = none,
    journals = none, rooms = none, keyed = none, large = none, aside = none, timeouts = none, woken = none, timers = 0, drafts = none, put_aside = none,
    earliest = false, seq = false, front = false, number = false, recount = false, on = false, stale = false,
  }
end
