-- renew resets what a unit of work has read and decided (store/begin.lua lists the fields).
local function renew(tx)
  local none = tx.none
  tx.tasks, tx.changed, tx.texts, tx.index, tx.sets, tx.counts = {}, {}, {}, {}, {}, {}
  tx.wakes, tx.events, tx.stops, tx.ended, tx.lists, tx.drops = none, none, none, none, none, none
  tx.before, tx.after, tx.drained, tx.waits, tx.fired, tx.journals = none, none, none, none, none, none
  tx.rooms, tx.keyed, tx.large, tx.aside, tx.timeouts, tx.woken = none, none, none, none, none, none
  tx.drafts, tx.noted, tx.overdue = none, none, none
  tx.figures, tx.tallies = none, none
  tx.recounts = none
  tx.timers, tx.earliest, tx.seq, tx.front, tx.number, tx.recount, tx.on = 0, false, false, false, false, false, false
  tx.stale = false
end
