-- renew forgets what a unit of work has read and decided. Beside each field stands the file that owns
-- it.
--
--   tasks, changed, texts  tasks read, those whose state changes, texts of new ones  store/record.lua
--   index, sets            what sorted sets gain and lose                             store/index.lua
--   lists, drops, before, after  other writes, before and after the records           store/later.lua
--   counts                 counters of queues                                         queue/count.lua
--   wakes                  queues that an idle worker should look at                  queue/wake.lua
--   events, stops, ended   what is told: in the stream, to workers, to who waits      store/emit.lua, store/publish.lua
--   drained                when tasks ended whose children are not all ended          task/drained.lua
--   waits, fired           waits of agents, and agents whose wait has fired           wait/read_wait.lua, wait/count_end.lua
--   journals               what agents remember                                       wait/journal.lua
--   rooms                  what queues may give                                       queue/free_slots.lua
--   large                  payloads that have a key of their own                      task/create.lua
--   keyed                  what idempotency keys stand for                            task/idempotency.lua
--   earliest               the next instant at which something is due                 store/alarm.lua
--   seq, front             places given in line                                       queue/place.lua
--   recount                running tasks must be counted anew                         queue/recount_running.lua
--   timeouts, woken, timers  tasks that timed out, agents woken, timers that fired    store/tell.lua
--   aside                  tasks put aside                                            task/put_aside.lua
--   on                     the task that is being decided                             store/unit.lua
local function renew(tx)
  tx.tasks, tx.changed, tx.texts = {}, {}, {}
  tx.index, tx.sets, tx.lists, tx.drops, tx.before, tx.after = {}, {}, {}, {}, {}, {}
  tx.counts, tx.wakes, tx.events, tx.stops, tx.ended = {}, {}, {}, {}, {}
  tx.drained, tx.waits, tx.fired, tx.journals = {}, {}, {}, {}
  tx.rooms, tx.keyed, tx.aside, tx.large = {}, {}, {}, {}
  tx.timeouts, tx.woken, tx.timers = nil, nil, nil
  tx.earliest, tx.seq, tx.front, tx.recount, tx.on = nil, nil, nil, nil, nil
  return tx
end
